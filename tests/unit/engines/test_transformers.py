"""Models of transformers: every architecture advances and rewinds; recurrent ones report that they cannot."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import numpy as np
import pytest

import guideway as gw
from guideway.errors import EngineError, ModelNotFoundError
from guideway.generation import Model
from guideway.testing import ARCHITECTURES, tiny_model
from tests.helpers.engines import check_engine, fed, model_of

pytestmark = pytest.mark.engine("torch", "transformers")


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)  # several wait for each other longer than these models run


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_sessions(architecture: str, tmp_path: Path) -> None:
    from guideway.engines.transformers import TransformersEngine

    folder = tiny_model(architecture, tmp_path)
    engine = TransformersEngine(folder)
    assert engine.vocab_size == 320
    assert engine.supports_rollback == (architecture != "mamba")
    model = model_of(engine, folder)
    every_token_counts(model_of(engine, folder))
    check_engine(model, tmp_path / "session")
    model.close()
    with pytest.raises(EngineError, match="closed"):
        engine.forward([[1]], [None])


def every_token_counts(model: Model) -> None:
    ids = [5, 6, 7, 8, 9]
    base = fed(model, ids).logits()
    for place in range(len(ids)):
        changed = [*ids]
        changed[place] = 99
        assert np.abs(fed(model, changed).logits() - base).max() > 1e-3


def test_an_error_without_a_message_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from guideway.engines.transformers import TransformersEngine

    def fail(*_: object, **__: object) -> None:
        raise OSError

    monkeypatch.setattr("transformers.AutoModelForCausalLM.from_pretrained", fail)
    with pytest.raises(ModelNotFoundError, match=r"cannot load .*: OSError"):
        TransformersEngine(tmp_path)


def test_wrong_names_are_clear_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from guideway.engines.transformers import TransformersEngine

    folder = tiny_model("llama", tmp_path / "model")
    with pytest.raises(EngineError, match="cannot use the device 'toaster'"):
        TransformersEngine(folder, device="toaster")
    with pytest.raises(EngineError, match="dtype 'float31'"):
        TransformersEngine(folder, dtype="float31")
    with pytest.raises(ModelNotFoundError, match=r"folder not found: .*nothing"):
        TransformersEngine(tmp_path / "nothing")
    with pytest.raises(ModelNotFoundError, match="cannot load"):
        TransformersEngine(tmp_path)  # a folder, but of no model
    asked = list[str]()

    def unreachable(_: object, name: str, **__: object) -> None:
        asked.append(name)
        raise OSError("no route")

    monkeypatch.setattr("huggingface_hub.HfApi.model_info", unreachable)
    start = perf_counter()
    with pytest.raises(ModelNotFoundError, match="'nobody/nothing-at-all'"):
        gw.load("hf:nobody/nothing-at-all")
    assert asked == ["nobody/nothing-at-all"]
    assert perf_counter() - start < 10  # the library alone tries again for half a minute
    with pytest.raises(ValueError, match="context_size"):
        TransformersEngine(folder, context_size=-1)
    assert TransformersEngine(folder, context_size=9, dtype="bfloat16", device="cpu").context_size == 9
    with pytest.raises(EngineError, match="no device 'cuda:x' here; available providers:"):
        gw.load("tiny", device="cuda:x")
    model = gw.load(f"hf:{folder}", device="cpu", context_size=50)
    assert (model.context_size, model.bos_ids) == (50, (0,))


def test_moved_model_is_reported(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    from guideway.engines.transformers import TransformersEngine

    folder = tiny_model("llama", tmp_path)
    loaded = AutoModelForCausalLM.from_pretrained(folder)
    engine = TransformersEngine(loaded)
    _, caches = engine.forward([[1, 2, 3]], [None])
    loaded.to("meta")  # as to a GPU: the weights are elsewhere
    for row, before in (([1, 2], None), ([4], caches[0])):
        with pytest.raises(EngineError, match="was moved from cpu to meta"):
            engine.forward([row], [before])


def test_caches_grow_in_place_and_stay_what_they_were(tmp_path: Path) -> None:
    from guideway.engines.kv_cache import own_rows
    from guideway.engines.transformers import TransformersEngine
    from guideway.engines.transformers.cache import TORCH

    engine = TransformersEngine(tiny_model("llama", tmp_path))
    rng = np.random.default_rng(5)
    rows = rng.integers(3, 300, (3, 90)).tolist()
    _, held = engine.forward([row[:10] for row in rows], [None] * 3)
    before = [engine.export(cache) for cache in held]
    places, caches = set[int](), held
    for at in range(10, 90):  # beyond the room that there is at first
        answers, caches = engine.forward([[row[at]] for row in rows], caches)
        places.add(own_rows(caches[0], TORCH).batch.arrays[0].data_ptr())
    assert len(places) == 2
    kept = [part.untyped_storage().nbytes() for part in own_rows(caches[0], TORCH).batch.arrays]
    assert caches[0].nbytes == sum(kept) // 3  # what it keeps alive, room included
    assert all(
        np.array_equal(was[name], now)
        for was, cache in zip(before, held, strict=True)
        for name, now in engine.export(cache).items()
    )
    fresh, _ = engine.forward(rows, [None] * 3)
    np.testing.assert_allclose(np.stack(answers), np.stack(fresh), atol=1e-4)
    # The engine extends the held caches a second time; this does not change the caches from the first extension.
    last = engine.export(caches[1])
    _, other = engine.forward([[7] * 30] * 3, held)
    assert np.array_equal(engine.export(caches[1])["1.value"], last["1.value"])
    assert np.array_equal(engine.export(other[1].truncated(10))["1.value"], before[1]["1.value"])


TINY = Path(gw.__file__).parent / "tiny"


def test_load_model_object() -> None:
    from transformers import AutoModelForCausalLM

    loaded = AutoModelForCausalLM.from_pretrained(TINY)
    with gw.load(f"hf:{TINY}") as named, gw.load(loaded, tokenizer=TINY, context_size=200) as model:
        assert model.engine._model is loaded
        assert model.context_size == 200
        assert model.tokenizer.eos_ids == named.tokenizer.eos_ids
        constraint = gw.Regex("[a-z ]{5,20}")
        assert gw.generate(model, "I feel ", constraint) == gw.generate(named, "I feel ", constraint)
    with pytest.raises(TypeError, match="needs tokenizer="):
        gw.load(loaded)
    with pytest.raises(TypeError, match="device_map= does not apply to a model object"):
        gw.load(loaded, tokenizer=TINY, device_map="auto")
    with pytest.raises(TypeError, match="got 3"):
        gw.load(3, tokenizer=TINY)


def test_options_reach_from_pretrained(monkeypatch: pytest.MonkeyPatch) -> None:
    from guideway.engines.transformers import loading

    found: dict[str, object] = {}
    read = loading.AutoModelForCausalLM.from_pretrained

    def seen(name: str, **options: object) -> object:
        found.update(options)
        return read(name, **{key: value for key, value in options.items() if key != "device_map"})

    monkeypatch.setattr(loading.AutoModelForCausalLM, "from_pretrained", seen)
    gw.load(f"hf:{TINY}", device_map="auto", revision="main").close()
    assert (found["device_map"], found["revision"]) == ("auto", "main")
    with pytest.raises(TypeError, match=r"device_map= does not apply to .tiny."):
        gw.load("tiny", device_map="auto")


def test_engines_of_one_model_object_take_turns(tmp_path: Path) -> None:
    """Each call replaces the attention of the model object; calls in two threads have the logits of calls in one."""
    import threading

    from transformers import AutoModelForCausalLM

    from guideway.engines.transformers import TransformersEngine

    loaded = AutoModelForCausalLM.from_pretrained(tiny_model("llama", tmp_path))
    engines = [TransformersEngine(loaded) for _ in range(2)]
    rows = [[[5 + i] * (3 + i) for i in range(4)], [[9 + i, 7] * (2 + i) for i in range(3)]]
    expected = [engine.forward(some, [None] * len(some))[0] for engine, some in zip(engines, rows, strict=True)]
    wrong: list[object] = []

    def run(number: int) -> None:
        for _ in range(30):
            try:
                found, _ = engines[number].forward(rows[number], [None] * len(rows[number]))
            except Exception as error:
                wrong.append(error)
                return
            if np.abs(found - expected[number]).max() > 1e-4:
                wrong.append(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    config = loaded.config.get_text_config()
    assert config._attn_implementation != "guideway_packed"


def test_a_concurrent_call_is_a_clear_error(tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    from guideway.engines.transformers.packed import _NAME

    loaded = AutoModelForCausalLM.from_pretrained(tiny_model("llama", tmp_path))
    loaded.config._attn_implementation = _NAME  # as while another thread runs the model
    with pytest.raises(EngineError, match="in another thread"):
        loaded(input_ids=torch.tensor([[5, 6]]))
