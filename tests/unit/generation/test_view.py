"""The HTML view of a generation: every token once, coloured by probability, all text escaped."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

import guideway as gw
from guideway.generation import View, complete
from guideway.testing import ConstantModel
from guideway.tokenizers import Vocabulary

TOKENS = [b"", b"<", b"a", b"\xc3", b"\xa9", b"\n", b"&b", b"'"]
VOCABULARY = Vocabulary(TOKENS, eos_ids=[0], special_ids=[0])


def test_a_view_shows_each_token_with_its_probabilities(tmp_path: Path) -> None:
    model = ConstantModel(VOCABULARY, np.log([0.01, 0.29, 0.1, 0.1, 0.1, 0.1, 0.2, 0.1]))
    found = complete(model, "<script>&b"[:1] + "&b", gw.Regex("(<|a)é\n&b'"), logprobs=2)
    view = View(model, [found, found])
    view.save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert page.startswith("<!doctype html>")
    assert view._repr_html_() in page
    tokens = re.findall(
        r'<span class="t( f)?" tabindex="0" style="([^"]*)">(.*?)<span class="n">(.*?)</span></span>', page, re.S
    )
    assert len(tokens) == 2 * len(found.tokens)
    marks = [bool(mark) for mark, *_ in tokens[: len(found.tokens)]]
    assert marks == [step.forced for step in found.steps]
    assert [text for _, _, text, _ in tokens[: len(found.tokens)]] == [
        "&lt;",
        "⟨c3⟩",
        "⟨a9⟩",
        "↵\n",
        "&amp;b",
        "&#x27;",
        "⏹",
    ]
    first = found.steps[0]
    assert f"hsla({120 * math.exp(first.logprob) ** 0.5:.0f}," in tokens[0][1]
    assert f"{first.masked_mass:.4%}" in tokens[0][3]
    assert '<span class="x">' in tokens[0][3]  # "&b" was likely, and not allowed
    assert f"log-probability {found.logprob:.2f}" in page


def test_without_probabilities_there_is_nothing_to_show() -> None:
    model = ConstantModel(VOCABULARY)
    with pytest.raises(ValueError, match="generate with logprobs=3"):
        View(model, complete(model, "a", gw.Regex("a")))
