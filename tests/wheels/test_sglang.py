"""SGLang's Python code on a CPU: the base of its grammar backends, and its sampler's calls for masks and processors.

The import of its packages runs too much code. So the files are loaded without the packages, and their other imports are
empty.
"""

from __future__ import annotations

import ast
import json
import random
import re
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import guideway as gw
from guideway.masks import ids
from guideway.testing import tiny_model

from .opened import importable, need

pytestmark = [pytest.mark.engine("torch"), pytest.mark.filterwarnings("default")]
EOS, WIDTH, END = 1, 320, [300, 301]
EMPTY = ["sglang.srt.parser", "sglang.srt.server_args", "sglang.srt.managers", "dill", "orjson"]


def bare(wheel: Path) -> dict[str, ModuleType]:
    """Returns SGLang's packages without the content of their `__init__`, and SGLang's configuration."""
    made = {}
    for name in (
        "sglang",
        "sglang.srt",
        "sglang.srt.constrained",
        "sglang.srt.arg_groups",
        "sglang.srt.sampling",
        "sglang.srt.utils",
    ):
        made[name] = ModuleType(name)
        made[name].__path__ = [str(wheel.joinpath(*name.split(".")))]
    context: Any = ModuleType("sglang.srt.runtime_context")
    context.serving = SimpleNamespace(reasoning_parser=None)
    context.get_serving = lambda: context.serving
    context.get_exec = lambda: SimpleNamespace(kernel=SimpleNamespace(grammar_backend="guideway"))
    context.get_context = context.get_resources = lambda: None
    return {**made, context.__name__: context}


def function(file: Path, name: str, names: dict[str, Any]) -> Any:
    """A function or method of a file, by itself."""
    tree = ast.parse(file.read_text("utf-8"))
    found = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == name)
    found.returns, found.decorator_list = None, []
    for one in found.args.args:
        one.annotation = None
    exec(compile(ast.Module([found], []), str(file), "exec"), names)
    return names[name]


@pytest.fixture(scope="module")
def sglang(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    import torch
    from transformers import AutoTokenizer

    wheel = need("sglang")
    folder: Path = tiny_model("llama", tmp_path_factory.mktemp("model"), seed=3)
    with importable(wheel, "sglang", EMPTY, bare(wheel)):
        from sglang.srt.constrained import base_grammar_backend as base

        import guideway.integrations.sglang as ours

        ours.register()
        ours.register()
        tokenizer = AutoTokenizer.from_pretrained(folder)
        backend = base.create_grammar_backend(None, tokenizer, WIDTH, {EOS, 300})
        srt = wheel / "sglang" / "srt"
        names = {"GrammarRow": base.GrammarRow, "GrammarMask": base.GrammarMask}
        update = function(srt / "sampling" / "sampling_batch_info.py", "update_regex_vocab_mask", names)
        apply_to = {"torch": torch, "logger": SimpleNamespace(debug=lambda *_: None)}
        processors = function(srt / "layers" / "sampler.py", "apply_custom_logit_processor", apply_to)
        yield SimpleNamespace(
            base=base,
            ours=ours,
            backend=backend,
            tokenizer=tokenizer,
            update=update,
            processors=processors,
            wheel=wheel,
        )


class Batch:
    """The attributes of a batch that SGLang's `update_regex_vocab_mask` reads."""

    def __init__(self, sglang: Any, grammars: list[Any]) -> None:
        self.sglang, self.grammars, self.grammar_mask = sglang, grammars, None
        self.temperatures, self.vocab_size, self.device = [1.0] * len(grammars), WIDTH, "cpu"

    def __len__(self) -> int:
        return len(self.grammars)

    def legal(self) -> list[list[int]]:
        import torch

        self.sglang.update(self)
        logits = torch.zeros(len(self), WIDTH)
        self.grammar_mask.apply(logits)
        return [torch.nonzero(row == 0).flatten().tolist() for row in logits]


def compiled(sglang: Any, kind: str, spec: str) -> Any:
    """Requests a grammar as SGLang's manager does: first a future, then a copy from its cache."""
    key = (kind, spec)
    value, hit = sglang.backend.get_cached_or_future_value(key, False)
    if hit:
        return value
    assert isinstance(value, Future)
    made = value.result(20)
    sglang.backend.set_cache(key, made.copy() if hasattr(made, "follower") else made)
    return made


SCHEMA = {
    "type": "object",
    "properties": {"age": {"type": "integer", "maximum": 99, "minimum": 0}},
    "required": ["age"],
}
TAG = {"format": {"type": "tag", "begin": "<n>", "content": {"type": "regex", "pattern": "[1-9]{2}"}, "end": "</n>"}}
CASES = [
    ("json", json.dumps(SCHEMA), r'\{"age": \d{1,2}.*\}'),
    ("regex", "[a-c]{3,5}", "[a-c]{3,5}"),
    ("ebnf", 'root ::= "a" root | "b"', "a*b"),
    ("full_assistant_ebnf", 'start: "a"~2..4 "b"', "a{2,4}b"),
    ("structural_tag", json.dumps(TAG), "<n>[1-9]{2}</n>"),
    ("json", "$$ANY$$", r"\{.*"),
]


def test_every_dispatch_constrains_rows_in_one_batch_with_free_rows(sglang: Any) -> None:
    table = gw.Tokenizer.of(sglang.tokenizer)
    for seed in range(8):
        chance = random.Random(seed)
        batch = Batch(sglang, [*(compiled(sglang, kind, spec) for kind, spec, _ in CASES), None])
        texts: list[list[int]] = [[] for _ in CASES]
        for _ in range(40):
            rows = batch.legal()
            assert rows[-1] == list(range(WIDTH))
            for text, grammar, legal in zip(texts, batch.grammars, rows, strict=False):
                if grammar.is_terminated():
                    assert legal == list(range(WIDTH))
                    continue
                text.append(EOS if EOS in legal else chance.choice(legal))
                grammar.accept_token(text[-1])
        for (kind, _, pattern), text in zip(CASES, texts, strict=True):
            assert re.match(pattern, table.decode([one for one in text if one != EOS]), re.DOTALL), kind


def test_copies_are_independent(sglang: Any) -> None:
    first, second = compiled(sglang, "regex", "a[bc]"), compiled(sglang, "regex", "a[bc]")
    first.accept_token(66)
    assert Batch(sglang, [first]).legal() != Batch(sglang, [second]).legal()
    third = first.copy()
    third.accept_token(67)
    assert Batch(sglang, [first]).legal() == [[67, 68]]


def test_rollback_restores_masks(sglang: Any) -> None:
    one = compiled(sglang, "regex", "(ab|c)*")
    masks = [Batch(sglang, [one]).legal()]
    for token in (66, 67, 68, EOS):
        one.accept_token(token)
        masks.append(Batch(sglang, [one]).legal())
    assert one.is_terminated()
    for count in (1, 2):
        one.rollback(count)
        del masks[-count:]
        assert Batch(sglang, [one]).legal() == masks[-1]
    assert not one.is_terminated()


def test_a_bad_constraint_is_an_object_that_says_why(sglang: Any) -> None:
    for kind, spec, what in (
        ("json", '{"type": "integer", "minimum": 5, "maximum": 3}', "/minimum"),
        ("json", "{", "JSON"),
        ("regex", "a(", "position 1"),
        ("ebnf", "root ::= nothing", "nothing"),
        ("structural_tag", "{}", "format"),
    ):
        found = compiled(sglang, kind, spec)
        assert isinstance(found, sglang.base.InvalidGrammarObject)
        assert what in found.error_message


def test_an_illegal_token_ends_the_request_with_an_error(sglang: Any) -> None:
    """SGLang turns a ValueError here into that request's abort."""
    one, other = compiled(sglang, "regex", "ab"), compiled(sglang, "regex", "ab")
    with pytest.raises(ValueError, match="not legal"):
        one.accept_token(68)
    assert Batch(sglang, [one, other]).legal() == [[EOS], [66, 271]]
    other.accept_token(66)
    other.accept_token(67)


def test_reasoning_parser_wraps_the_backend(sglang: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a reasoning parser, SGLang's backend wraps guideway's, and decides where the constraint begins."""
    import sys

    made: list[Any] = []
    reasoner: Any = ModuleType("sglang.srt.constrained.reasoner_grammar_backend")
    reasoner.ReasonerGrammarBackend = lambda *given, **named: made.append((given, named)) or "behind"
    monkeypatch.setitem(sys.modules, reasoner.__name__, reasoner)
    monkeypatch.setattr(
        sys.modules["sglang.srt.runtime_context"],
        "serving",
        SimpleNamespace(reasoning_parser="deepseek-r1", enable_strict_thinking=False),
    )
    assert sglang.base.create_grammar_backend(None, sglang.tokenizer, WIDTH, {EOS}) == "behind"
    assert isinstance(made[0][0][0], sglang.ours.GuidewayBackend)


def reasoner(sglang: Any, **options: Any) -> Any:
    """Returns SGLang's backend around guideway's, with a reasoning parser whose end marker is 300, 301."""
    from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarBackend

    detector = SimpleNamespace(get_think_end_token_ids=lambda _: END, get_answer_frame=lambda: None)
    detector.think_excluded_tokens = ["!"]
    backend = sglang.ours.GuidewayBackend(sglang.tokenizer, WIDTH, {EOS})
    return ReasonerGrammarBackend(backend, SimpleNamespace(detector=detector), sglang.tokenizer, **options)


def test_strict_thinking(sglang: Any) -> None:
    """Forbidden tokens are excluded from the reasoning, and the end marker is forced after the token limit."""
    never = sglang.tokenizer.encode("!", add_special_tokens=False)
    one = reasoner(sglang, enable_strict_thinking=True).get_cached_or_future_value(("regex", "ab"), True)[0].result(20)
    allowed = [token for token in range(WIDTH) if token not in never]
    one.max_think_tokens = 2
    for thought in (77, 78):
        assert Batch(sglang, [one]).legal() == [allowed]
        one.accept_token(thought)
    for token in END:
        assert Batch(sglang, [one]).legal() == [[token]]
        one.accept_token(token)
    assert Batch(sglang, [one]).legal() == [[66, 271]]


def test_constraint_begins_after_reasoning(sglang: Any) -> None:
    """SGLang's wrapper around our grammars: free during reasoning, constrained after it; rollback crosses the end."""
    backend = reasoner(sglang)
    whole = list(range(WIDTH))
    for requires in (True, False):
        value, _ = backend.get_cached_or_future_value(("regex", "ab"), requires)
        one = value.result(20)
        for thought in (77, 300, 78, *END) if requires else ():
            assert Batch(sglang, [one, None]).legal() == [whole, whole]
            one.accept_token(thought)
        masks = []
        for token in (66, 67, EOS):
            masks.append(Batch(sglang, [one]).legal())
            one.accept_token(token)
        assert masks == [[[66, 271]], [[67]], [[EOS]]]
        assert one.is_terminated()
        one.rollback(2)
        assert not one.is_terminated()
        other = one.copy()
        assert Batch(sglang, [one, other]).legal() == [[67], [67]]
        if requires:
            one.rollback(2)
            assert Batch(sglang, [one, other]).legal() == [whole, [67]]
            for token in (301, 66, 67):
                one.accept_token(token)
            assert Batch(sglang, [one, other]).legal() == [[EOS], [67]]


def test_the_logit_processor(sglang: Any) -> None:
    """By SGLang's own `apply_custom_logit_processor`: two constrained rows, one free, one that is wrong."""
    import torch

    asked = [
        {"regex": "[a-c]{3}"},
        None,
        {"choice": '["abba", "cab"]'},
        {"regex": "a("},
        {"regex": "[a-c]{2,60}", "max_tokens": 5},
    ]
    requests = [
        SimpleNamespace(rid=f"r{index}", tokenizer=sglang.tokenizer, output_ids=[]) for index in range(len(asked))
    ]
    params = [
        {"__req__": request, "guideway": given} if given else {"__req__": request}
        for request, given in zip(requests, asked, strict=True)
    ]
    rows = list(range(len(asked)))
    entry = SimpleNamespace(processor=sglang.ours.GuidewayLogitProcessor(), rows=rows, indices=torch.tensor(rows))

    class Info(SimpleNamespace):
        def __len__(self) -> int:
            return len(rows)

    info = Info(custom_params=params, device="cpu", custom_logit_processor={1: entry})
    chance = torch.Generator().manual_seed(3)
    for _ in range(8):
        logits = torch.randn(len(rows), WIDTH, generator=chance)
        before = logits.clone()
        sglang.processors(logits, info)
        assert torch.equal(logits[1], before[1])
        for request, token in zip(requests, logits.argmax(-1).tolist(), strict=True):
            request.output_ids.append(token)
    table = gw.Tokenizer.of(sglang.tokenizer)
    texts = [table.decode(request.output_ids[: request.output_ids.index(EOS)]) for request in requests[::2]]
    assert re.fullmatch("[a-c]{3}", texts[0])
    assert texts[1] in ("abba", "cab")
    assert EOS in requests[4].output_ids[:5]
    assert set(requests[3].output_ids) == {EOS}
    assert "position 1" in str(requests[3].guideway_follower.error)


def test_masks_are_as_wide_as_the_logits(sglang: Any) -> None:
    one = compiled(sglang, "regex", "[a-c]+")
    mask = one.allocate_vocab_mask(WIDTH + 100, 2, "cpu")
    one.fill_vocab_mask_batched([sglang.base.GrammarRow(1, one)], mask)
    rows = mask.numpy().view(np.uint32)
    assert ids(rows[0], 32 * rows.shape[1]).size == 32 * rows.shape[1]
    assert max(ids(rows[1], 32 * rows.shape[1])) < WIDTH
    one.reset_vocab_mask(mask)
    assert (mask == -1).all()
