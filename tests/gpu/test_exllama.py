"""ExLlamaV2 and ExLlamaV3 with a random model on a CUDA device: filters and the logits processor.

Both libraries compile their extension with nvcc at the first import, which takes minutes.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import guideway as gw

PATTERN = r"(19|20)\d\d( and (19|20)\d\d){0,2}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from benchmarks.harness.random_models import random_llama

    return random_llama(tmp_path_factory.mktemp("llama"), vocabulary=32_000, width=512, layers=2)


@pytest.fixture(scope="module")
def v2(folder: Path) -> tuple[Any, Any]:
    from exllamav2 import ExLlamaV2, ExLlamaV2Cache, ExLlamaV2Config, ExLlamaV2Tokenizer

    config = ExLlamaV2Config(str(folder))
    config.max_seq_len = config.max_input_len = 1024  # loading runs a prompt of the largest size
    model = ExLlamaV2(config)
    model.load_autosplit(ExLlamaV2Cache(model, max_seq_len=1024, lazy=True))
    return model, ExLlamaV2Tokenizer(config)


@pytest.mark.engine("exllamav2", "transformers")
class TestV2:
    def test_dynamic_generator(self, v2: tuple[Any, Any]) -> None:
        from exllamav2 import ExLlamaV2Cache
        from exllamav2.attn import has_flash_attn_with_paged
        from exllamav2.generator import ExLlamaV2DynamicGenerator

        from guideway.integrations.exllamav2 import ConstraintFilter

        model, tokenizer = v2
        cache = ExLlamaV2Cache(model, max_seq_len=1024)
        made = ExLlamaV2DynamicGenerator(
            model=model, cache=cache, tokenizer=tokenizer, paged=bool(has_flash_attn_with_paged)
        )
        ends = {"add_bos": True, "stop_conditions": [tokenizer.eos_token_id]}
        for as_mask in (True, False):
            year = ConstraintFilter(model, tokenizer, gw.Regex(PATTERN), as_mask=as_mask, max_tokens=40)
            text = made.generate("Founded in ", max_new_tokens=40, filters=[year], completion_only=True, **ends)
            year.check()
            assert re.fullmatch(PATTERN, text)

    def test_streaming_generator(self, v2: tuple[Any, Any]) -> None:
        from exllamav2 import ExLlamaV2Cache
        from exllamav2.generator import ExLlamaV2Sampler, ExLlamaV2StreamingGenerator

        from guideway.integrations.exllamav2 import ConstraintFilter

        model, tokenizer = v2
        made = ExLlamaV2StreamingGenerator(model, ExLlamaV2Cache(model, max_seq_len=1024), tokenizer)
        made.set_stop_conditions([tokenizer.eos_token_id])
        year = ConstraintFilter(model, tokenizer, gw.Regex(PATTERN), max_tokens=40)
        made.begin_stream_ex(tokenizer.encode("In "), ExLlamaV2Sampler.Settings(), filters=[year])
        text = ""
        for _ in range(40):
            found = made.stream_ex()
            text += found["chunk"]
            if found["eos"]:
                break
        year.check()
        assert re.fullmatch(PATTERN, text)

    def test_a_batch_with_a_processor(self, v2: tuple[Any, Any]) -> None:
        from exllamav2 import ExLlamaV2Cache
        from exllamav2.generator import ExLlamaV2BaseGenerator

        from guideway.integrations.exllamav2 import Settings, logits_processor

        model, tokenizer = v2
        constraints = [gw.Regex(r"\d{4}"), gw.Choice(["fine", "tired"])]
        settings = Settings(logits_processor=logits_processor(constraints, tokenizer))
        made = ExLlamaV2BaseGenerator(model, ExLlamaV2Cache(model, batch_size=2, max_seq_len=1024), tokenizer)
        prompts = ["Founded in ", "I feel "]
        first, second = made.generate_simple(
            prompts, settings, 12, stop_token=tokenizer.eos_token_id, completion_only=True
        )
        assert re.fullmatch(r"\d{4}", first)
        assert second in ("fine", "tired")


@pytest.mark.engine("exllamav3", "transformers")
def test_v3(folder: Path) -> None:
    from exllamav3 import Cache, Config, Generator, Model, Tokenizer

    from guideway.integrations.exllamav3 import ConstraintFilter

    config = Config.from_directory(str(folder))
    model = Model.from_config(config)
    cache = Cache(model, max_num_tokens=4096)
    model.load()
    tokenizer = Tokenizer.from_config(config)
    year = ConstraintFilter(tokenizer, gw.Regex(PATTERN), eos_after_completed=True)
    text = Generator(model, cache, tokenizer).generate(
        "Founded in ", max_new_tokens=40, filters=[year], completion_only=True
    )
    assert re.fullmatch(PATTERN, text)
