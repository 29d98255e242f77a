"""The public functions and classes as a user calls them: signatures, methods of `Model`, sessions, errors, masks."""

from __future__ import annotations

import asyncio
import inspect
import pydoc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel

import guideway as gw
from guideway import generation, masks
from guideway.errors import (
    BudgetTooSmallError,
    GuidewayError,
    InvalidTokenError,
    ProcessorReuseError,
    RejectedTokenError,
)
from guideway.generation import OPTIONS, Options, stream_extract
from guideway.generation.options import BaseOptions
from guideway.integrations._common import Processor
from guideway.testing import ConstantModel
from guideway.tokenizers import Vocabulary

BYTES = Vocabulary([b"", *(bytes([b]) for b in range(256))], eos_ids=[0], special_ids=[0])
ABC = Vocabulary([b"a", b"b", b"c", b"ab", b""], eos_ids=[4], special_ids=[4])


class Person(BaseModel):
    name: str
    age: int


@pytest.fixture(scope="module")
def model() -> gw.Model:
    return ConstantModel(BYTES, np.where(np.arange(257) == ord("a") + 1, 1.0, 0.0))


FUNCTIONS = ["generate", "complete", "extract", "stream", "stream_values", "stream_extract"]
ASYNC = ["agenerate", "acomplete", "aextract", "astream", "astream_values"]


@pytest.mark.parametrize("name", [*FUNCTIONS, *ASYNC, "resume"])
def test_signature_and_help_show_options_with_defaults(name: str) -> None:
    function = getattr(generation, name)
    parameters = inspect.signature(function).parameters
    assert not any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values())
    text = pydoc.plain(pydoc.render_doc(function))
    for option, (default, _) in OPTIONS.items():
        assert parameters[option].default == default
        assert f"        {option}: " in text, option
    assert "**options" not in text
    for section in ("Args:", "Returns:", "Raises:"):
        assert section in text


def test_the_table_of_options_is_complete() -> None:
    typed = {name for base in (BaseOptions, Options) for name in base.__annotations__}
    assert set(OPTIONS) == typed


@pytest.mark.parametrize("name", [*FUNCTIONS, *ASYNC, "resume", "score"])
def test_methods_of_a_model_are_the_functions(name: str, model: gw.Model) -> None:
    method = getattr(model, name)
    assert method.__func__ is getattr(generation, name)
    assert next(iter(inspect.signature(method).parameters)) != "model"


def test_methods_generate(model: gw.Model) -> None:
    assert model.generate("x", gw.Regex("[ab]{3}")) == "aaa"
    assert model.complete("x", gw.Regex("[ab]{3}")).text == "aaa"
    assert "".join(model.stream("x", gw.Regex("[ab]{3}"))) == "aaa"
    assert [one.option for one in model.score("x", ["a", "b"])] == ["a", "b"]


def test_stream_extract_and_aextract_give_what_extract_gives(model: gw.Model) -> None:
    person = gw.extract(model, "Ada is 36", Person, max_tokens=60)
    parts = list(stream_extract(model, "Ada is 36", Person, max_tokens=60))
    assert parts[-1].value == person
    assert sorted(parts[0].fields) != ["age", "name"]
    assert asyncio.run(gw.aextract(model, "Ada is 36", Person, max_tokens=60)) == person
    assert asyncio.run(model.aextract(["Ada is 36"], Person, max_tokens=60)) == [person]
    with pytest.raises(TypeError, match="text must be a str"):
        stream_extract(model, 5, Person)  # type: ignore[call-overload]  # what is tested


def test_values_are_none_where_the_text_may_be_cut(model: gw.Model) -> None:
    cut = gw.generate(model, "x", gw.Regex("[ab]{9}"), max_tokens=4, allow_truncation=True)
    assert cut is None
    good, bad = gw.generate(model, ["x", ""], gw.Regex("[ab]{3}"), return_exceptions=True)
    assert good == "aaa"
    assert isinstance(bad, GuidewayError)


# -- sessions ----------------------------------------------------------------------------------------------------------


def test_a_session_completes_its_constraint(model: gw.Model) -> None:
    with model.session() as session:
        session.feed("x")
        with pytest.raises(ValueError, match=r"session\.constrain"):
            session.complete()
        session.constrain(gw.Regex("[ab]{3}"))
        assert not session.is_finished
        with pytest.raises(BudgetTooSmallError):
            session.complete(max_tokens=3)
        assert session.text == "x"
        assert session.complete(max_tokens=4) == [98, 98, 98, 0]
        assert session.is_finished
        assert session.complete() == []
    assert session.text == "xaaa"


def test_a_session_that_cannot_complete_is_unchanged() -> None:
    small = ConstantModel(ABC, [0.0, 1.0, 0.0, 0.0, 0.0], context_size=6)
    session = small.session()
    session.feed("aa")
    session.constrain(gw.Regex("[abc]{5,}"))
    with pytest.raises(BudgetTooSmallError):
        session.complete()
    assert session.tokens == [0, 0]
    session.constrain(gw.Regex("[abc]{3,}"))
    assert len(session.complete()) <= 4
    assert session.is_finished


def test_a_closed_session_releases_its_cache_and_runs_again(model: gw.Model) -> None:
    with model.session() as session:
        session.feed("abc")
        before = session.logits()
        assert session.parts().cache is not None
    assert session.parts().cache is None
    assert session.text == "abc"
    assert np.array_equal(session.logits(), before)


# -- errors ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fill", [False, True])
def test_a_rejected_token_is_described(fill: bool) -> None:
    matcher = gw.compile(gw.Regex("a(b|c)"), ABC).matcher()
    row = masks.new_rows(1, len(ABC))[0]
    advance: Callable[[int], Any] = (lambda one: matcher.advance_and_fill(one, row)) if fill else matcher.advance
    advance(0)
    with pytest.raises(
        RejectedTokenError, match=r"token 3 .*bytes b'ab', position 1; legal tokens: b'b' \(id 1\), b'c'"
    ) as found:
        advance(3)
    assert (found.value.token_id, found.value.token_bytes, found.value.position) == (3, b"ab", 1)
    assert found.value.legal_tokens == ((1, b"b"), (2, b"c"))
    with pytest.raises(RejectedTokenError, match="not complete") as early:
        advance(4)
    assert early.value.token_id == 4
    advance(1)
    advance(4)
    with pytest.raises(RejectedTokenError, match="end of the text") as late:
        advance(1)
    assert late.value.legal_tokens == ((4, b""),)
    with pytest.raises(InvalidTokenError):
        advance(5)
    assert matcher.position == 3


def test_at_most_five_legal_tokens_are_named() -> None:
    matcher = gw.compile(gw.Regex("[a-z]"), BYTES).matcher()
    with pytest.raises(RejectedTokenError) as found:
        matcher.advance(ord("A") + 1)
    assert [token for _, token in found.value.legal_tokens] == [b"a", b"b", b"c", b"d", b"e"]


# -- processors and masks ----------------------------------------------------------------------------------------------


def test_a_processor_is_used_again_after_reset() -> None:
    processor = Processor(gw.Regex("a*"), ABC)
    with processor:
        first, _ = processor.masks(np.array([[1, 2]]))
        first = first.copy()
    with processor, pytest.raises(ProcessorReuseError, match=r"reset\(\)"):
        processor.masks(np.array([[2, 1, 0, 0, 0]]))
    processor.reset()
    with processor:
        again, held = processor.masks(np.array([[2, 1, 0, 0, 0]]))
        assert np.array_equal(again, first)
        assert held == [True]
        with pytest.raises(ProcessorReuseError, match="in use"):
            processor.reset()


@pytest.mark.engine("torch")
def test_masks_on_tensors() -> None:
    import torch

    row = masks.pack([1, 3], 5)
    logits = np.arange(7, dtype=np.float32)
    expected = np.where(np.isin(np.arange(7), [1, 3]), logits, -np.inf)
    for kind in (torch.float32, torch.float16):
        given = torch.from_numpy(logits).to(kind)
        assert np.array_equal(masks.apply_torch(given, row).float().numpy(), expected)
        both = masks.apply_torch(torch.stack([given, given]), np.stack([row, row]))
        assert np.array_equal(both.float().numpy(), np.stack([expected, expected]))
        assert given.isfinite().all()
    with pytest.raises(ValueError, match="as many rows"):
        masks.apply_torch(torch.zeros(2, 7), row)
    assert masks.apply(logits, row)
    assert np.array_equal(logits, expected)


@pytest.mark.engine("mlx")
def test_masks_on_arrays_of_mlx() -> None:
    import mlx.core as mx

    row = masks.pack([1, 3], 5)
    expected = np.where(np.isin(np.arange(7), [1, 3]), np.arange(7, dtype=np.float32), -np.inf)
    assert np.array_equal(np.array(masks.apply_mlx(mx.arange(7).astype(mx.float32), row)), expected)
