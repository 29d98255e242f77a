"""Grammars of real languages (tests/real): masked samples are parsed by independent parsers."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import chess
import pycparser
import pytest
import sqlglot

import guideway as gw

from .sampling import samples

REAL = Path(__file__).parent.parent / "real"


def python_expression(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # calls of numbers, for example, are valid Python
        ast.parse(text, mode="eval")


def chess_moves(text: str) -> None:
    for line in text.splitlines():
        for move in line.split(" "):
            if not re.fullmatch(r"\d+\.|1-0|0-1|1/2-1/2", move) and not chess.SAN_REGEX.match(move):
                assert re.fullmatch(r"O-O(-O)?[+#]?", move), move


def c_declarations(text: str) -> None:
    pycparser.CParser().parse(text)


PARSERS: dict[str, Callable[[str], Any]] = {
    "json.lark": json.loads,
    "arithmetic.lark": lambda text: python_expression(text.strip()),
    "sql.lark": lambda text: sqlglot.parse_one(text, error_level=sqlglot.ErrorLevel.RAISE),
    "python.lark": python_expression,
    "chess.gbnf": chess_moves,
    "c.gbnf": c_declarations,
}


def source(name: str) -> Any:
    """The grammar of a file."""
    return (gw.Lark if name.endswith(".lark") else gw.Gbnf)((REAL / name).read_text("utf-8"))


def hold(name: str, count: int, seed: int) -> None:
    parse = PARSERS[name]
    for text in samples(source(name), count, seed):
        try:
            parse(text)
        except Exception as error:
            raise AssertionError(f"{name}: {text!r}: {error}") from error


@pytest.mark.parametrize("name", PARSERS)
def test_samples_are_read_back(name: str) -> None:
    hold(name, 30, 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", PARSERS)
def test_a_thousand_samples_are_read_back(name: str) -> None:
    hold(name, 1000, 1)
