"""The parser of calls in Python notation, compared with Python's own parser."""

from __future__ import annotations

import ast
import contextlib
import random
import threading
import time
import warnings
from typing import Any

import pytest

from guideway.constraints.tools.python_calls import read_calls
from guideway.jsontext.decoder import plain_json
from tests.helpers.counts import counts

WORDS = {"true": True, "false": False, "null": None}
FRAGMENTS = [
    *("f(a=1)", "f()", "functions.g(x='y', z=[1, 2])", "a=", "b=1,", "f(", ")", "[", "]", "{", "}", "(", ",", ".", ":"),
    *(
        "'a'",
        '"b"',
        "'''c'''",
        '"""d"""',
        "''",
        '""',
        "'\\n\\x41\\u00e9\\q'",
        "'\\N{BULLET}'",
        "r'\\d'",
        "u'x'",
        "b'x'",
    ),
    *("'\\101'", "'\\x4'", "'\\N{no name}'", "'it''s'", "'''a'b''c'''", "'", '"', "'''", "'\\\n'", "'\\", "f'{x}'"),
    *(
        "1",
        "-1",
        "- 1",
        "+1",
        "0",
        "00",
        "01",
        "1_000",
        "1__0",
        "0x1F",
        "0o7",
        "0b1",
        "1.5",
        "1.",
        ".5",
        "1e3",
        "-1E-3",
    ),
    *(
        "1j",
        "1a",
        "True",
        "False",
        "None",
        "true",
        "false",
        "null",
        "name",
        "-True",
        " ",
        "\n",
        "\t",
        "# note\n",
        "\\\n",
    ),
    *(
        "{'a': 1}",
        "{'a': [True, {'b': null}]}",
        "{1: 2}",
        "{'a'}",
        "(1,)",
        "(1)",
        "()",
        "(1, 2)",
        "[1,]",
        "[f(a=1), g()]",
    ),
    *("**x", "*x", "f(1)", "f(a)", "x.y.z(k='v')", "f(a=g())", "é(ñ='ü')", "a-b(c=1)", ";", "=", "\r\n", "lambda: 1"),
]


def by_python(text: str) -> list[tuple[str, dict[str, Any]]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(text.strip(), mode="eval").body
    calls = []
    for one in tree.elts if isinstance(tree, (ast.List, ast.Tuple)) else [tree]:
        if not isinstance(one, ast.Call) or one.args or any(word.arg is None for word in one.keywords):
            raise ValueError
        if not all(isinstance(part, (ast.Name, ast.Attribute, ast.Load)) for part in ast.walk(one.func)):
            raise ValueError
        calls.append((ast.unparse(one.func), {str(word.arg): value_of(word.value) for word in one.keywords}))
    return calls


def value_of(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value) if value is None or isinstance(value, (bool, int, float, str)):
            return value
        case ast.Name(name) if name in WORDS:
            return WORDS[name]
        case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as value)) if not isinstance(value, bool):
            return -value
        case ast.List(parts) | ast.Tuple(parts):
            return [value_of(part) for part in parts]
        case ast.Dict(keys, values) if all(
            isinstance(key, ast.Constant) and isinstance(key.value, str) for key in keys
        ):
            return {key.value: value_of(value) for key, value in zip(keys, values, strict=True)}  # type: ignore[union-attr]  # as `if` says
    raise ValueError(node)


@counts(20_000, 60_000)
def test_it_reads_what_pythons_parser_reads(count: int) -> None:
    rng = random.Random(38)
    both = 0
    for _ in range(count):
        inner = "".join(rng.choice(FRAGMENTS) for _ in range(rng.randrange(1, 4)))
        form = rng.choice(("{}", "f(a={})", "[f(a={}), g(b={})]", "f({})", "f(a=[{}], b={{'c': {}}})"))
        text = form.replace("{}", inner).replace("{{", "{").replace("}}", "}")
        try:
            expected = by_python(text)
        except (SyntaxError, ValueError):
            continue  # the parser accepts a little more: line ends between calls
        found = [(name, plain_json(arguments)) for name, arguments in read_calls(text.strip())]
        assert repr(found) == repr(expected), text
        both += 1
    assert both > count // 12


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "1",
            "[1]",
            "f",
            "f(1)",
            "f(a)",
            "f(a=g())",
            "f(a=1",
            "f(a=1))",
            "f(,)",
            "f(a=1,,)",
            "[f(),,]",
            "f() g()",
        ),
        *(
            "{'a': f()}",
            "[[f()]]",
            "f(a={1: 2})",
            "f(a={'b'})",
            "f(a='x)",
            "f(a='\n')",
            "f(a=b'x')",
            "f(a=f'x')",
            "f(a=1j)",
        ),
        *(
            "f(a=01)",
            "f(a=1__0)",
            "f(a='\\x4')",
            "f(a='\\N{no name}')",
            "f(a='\\U00110000')",
            "f(a=--1)",
            "f(a=+1)",
            "f(*a)",
        ),
        *("f(**a)", "f[0](a=1)", "f(a=1+1)", "f(a=[1)]", "a-b(c=1)", "f(“a”=1)", "f(a=1);g()", "f(a=-True)"),
    ],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected|base|character|chr"):
        read_calls(text)


DEEP = {
    "lists": "f(a=" + "[" * 50_000 + "]" * 50_000 + ")",
    "tuples": "f(a=" + "(" * 50_000 + ")" * 50_000 + ")",
    "dicts": "f(a=" + "{'a': " * 50_000 + "1" + "}" * 50_000 + ")",
    "open lists": "f(a=" + "[" * 100_000,
    "calls": "f(a=" * 50_000,
    "signs": "f(a=" + "-" * 100_000 + "1)",
    "names": "a." * 50_000 + "f()",
    "open strings": "f(a=" + "'''\\" * 30_000,
    "escapes": "f(a='" + "\\" * 100_001 + "')",
    "quotes": "f(a='''" + "''x" * 30_000,
    "digits": "f(a=" + "1" * 100_000 + ")",
    "digits and letters": "f(a=" + "1_" * 50_000 + "x)",
    "fractions": "f(a=" + "1." * 50_000 + ")",
    "comments": "#\n" * 50_000 + "f()",
    "strings": "f(a=" + "'a'" * 30_000 + ")",
    "white space": " \\\n" * 30_000 + "?",
}


@pytest.mark.parametrize("name", DEEP)
def test_hostile_texts_take_linear_time_and_no_stack(name: str) -> None:
    times: list[float] = []

    def run() -> None:
        start = time.thread_time()
        with contextlib.suppress(ValueError):
            read_calls(DEEP[name])
        times.append(time.thread_time() - start)

    before = threading.stack_size(128 << 10)
    try:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert times[0] < 2
