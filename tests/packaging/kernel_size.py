"""Measures the kernel's C++: lines of functions, and methods of classes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

NOISE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"\((?:.*?)\)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*',
    re.S | re.M,
)
ACCESS = re.compile(r"\b(?:public|private|protected):")
CLASS = re.compile(r"\b(class|struct|union)\s+(?:alignas\([^)]*\)\s*)?(\w+)(?:\s+final)?\s*(?::[^:].*)?$", re.S)
NAMED = re.compile(r"([~\w:]+|operator\s*(?:\(\)|[^\s(]+))\s*\($")


def blank(source: str) -> str:
    """The source without comments, texts and directives; lines stay where they are."""
    return NOISE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), re.sub(r"(?<=\d)'(?=\d)", "", source))


@dataclass
class Function:
    name: str
    file: str
    first: int
    last: int

    @property
    def lines(self) -> int:
        """From the line of its name to its closing brace."""
        return self.last - self.first + 1


@dataclass
class Class:
    name: str
    file: str
    methods: set[str] = field(default_factory=set)


@dataclass
class Sizes:
    functions: list[Function] = field(default_factory=list)
    classes: list[Class] = field(default_factory=list)


def function_name(head: str) -> str | None:
    """The name of the function that a declaration (up to its body, or its semicolon) declares; none: something else."""
    text = re.sub(r"\b(public|protected|private)\s*:", " ", head)
    text = re.sub(r"^\s*template\s*<[^{;]*?>(?=\s*[\w~:\[])", " ", text.strip(), flags=re.S)
    text = re.sub(r"\b(alignas|decltype|__attribute__)\s*\((?:[^()]|\([^()]*\))*\)", " ", text)
    if re.match(
        r"\s*(using|typedef|friend|static_assert|enum|namespace|extern|return|if|for|while|switch|else|do|try|catch)\b",
        text,
    ):
        return None
    called = re.search(r"operator\s*\(\s*\)\s*\(|\(", text)
    if called is None or "=" in re.sub(r"operator\s*[^\s(]*|[=!<>]=", "", text[: called.start()]):
        return None
    found = NAMED.search(text[: called.end()])
    name = found[1] if found else None
    if called[0].startswith("operator"):
        name = "operator()"
    return None if name is None or name in {"if", "for", "while", "switch", "catch", "return", "sizeof"} else name


def measure(path: Path, sizes: Sizes) -> None:
    """Adds what a file defines."""
    source = blank(path.read_text("utf-8"))
    stack: list[tuple[str, object]] = []  # what each open brace begins
    start = 0
    for at in (found.start() for found in re.finditer(r"[{};]", source)):
        head = source[start:at]
        inside = stack[-1][0] if stack else "namespace"
        here = stack[-1][1] if stack else None
        if source[at] == "{":
            stack.append(opened(head, source, start, at, path, inside, here, sizes))
        elif source[at] == "}":
            kind, what = stack.pop() if stack else ("namespace", None)
            if kind == "function" and isinstance(what, Function):
                what.last = source.count("\n", 0, at) + 1
                sizes.functions.append(what)
        elif inside == "class" and isinstance(here, Class) and (name := function_name(head)):
            here.methods.add(name)
        # What follows a braced initializer belongs to the same declaration.
        if not (source[at] != ";" and stack and stack[-1][0] == "value") and not (
            source[at] == "}" and kind == "value"
        ):
            start = at + 1


def opened(
    head: str, source: str, start: int, at: int, path: Path, inside: str, here: object, sizes: Sizes
) -> tuple[str, object]:
    """What a brace begins: a namespace, a class, a function, or a value or block."""
    if inside in {"function", "value", "block"}:
        local = CLASS.search(head)
        if local:
            made = Class(local[2], path.name)
            sizes.classes.append(made)
            return "class", made
        return "block", None
    text = head.strip()
    if re.search(r"\bnamespace\b[\w\s:]*$|\bextern\s+\S*\s*$", text):
        return "namespace", None
    found = CLASS.search(re.sub(r"^\s*template\s*<.*?>\s*(?=class|struct)", "", text, flags=re.S))
    if found and "(" not in text.split(found[1])[0]:
        made = Class(found[2], path.name)
        sizes.classes.append(made)
        return "class", made
    if re.match(r"(?:\s|public:|private:|protected:)*enum\b", text):
        return "value", None
    name = function_name(head)
    # `member_{value}` in a list of initializers, or a default value.
    listed = re.search(r"[,:(=]\s*\w*\s*$|\breturn\s*$", ACCESS.sub("", text))
    if name is None or listed or "= " in re.sub(r"\(.*\)", "", text, flags=re.S):
        return "value", None
    if isinstance(here, Class):
        here.methods.add(name)
    first = source.count("\n", 0, start + len(head) - len(head.lstrip())) + 1
    return "function", Function(name, path.name, first, first)


def sizes(files: Iterable[Path]) -> Sizes:
    """Return the functions and classes in C++ files."""
    made = Sizes()
    for path in files:
        measure(path, made)
    return made
