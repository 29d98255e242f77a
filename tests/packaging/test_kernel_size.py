"""Functions and classes of the kernel stay small (CONTRIBUTING.md)."""

from __future__ import annotations

from pathlib import Path

from .kernel_size import sizes
from .repository import kernel_files

LINES, METHODS = 60, 40


def test_functions_are_short() -> None:
    found = sizes(kernel_files())
    assert len(found.functions) > 1000
    long = [
        f"{each.file}:{each.first} {each.name}: {each.lines} lines" for each in found.functions if each.lines > LINES
    ]
    assert not long, "functions of more than 60 lines: " + "; ".join(long)


def test_classes_have_few_methods() -> None:
    found = sizes(kernel_files())
    assert len(found.classes) > 200
    large = [
        f"{each.file} {each.name}: {len(each.methods)} methods, at most {METHODS}"
        for each in found.classes
        if len(each.methods) > METHODS
    ]
    assert not large, "; ".join(large)


def test_sizes_are_measured(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "a.h").write_text(
        'struct A {\n    int f() const { return g({1, 2}); }\n    void h(const char* text = "{");\n    int member_ = g(1);\n'
        "    A() : member_{1} {\n        if (true) {\n        }\n    }\n    friend class B;\n};\n"
        "template <class T>\nint\nA::outside(T t) {\n    return [&] {\n        return t;\n    }();\n}\n"
    )
    found = sizes([tmp_path / "base" / "a.h"])
    assert [(each.name, each.methods) for each in found.classes] == [("A", {"f", "h", "A"})]
    assert sorted((each.name, each.lines) for each in found.functions) == [("A", 4), ("A::outside", 7), ("f", 1)]
