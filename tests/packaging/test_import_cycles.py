"""No modules of the package import each other in a cycle. Imports inside functions count; those for types do not."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from guideway.grammar.cfg.scc import strongly_connected_components

from .repository import PACKAGE, child_statements, python_files


def sources() -> dict[str, str]:
    """The text of each module by its name."""
    found = {}
    for path in python_files():
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text("utf-8")
    return found


def run_time_statements(tree: ast.AST) -> Iterator[ast.AST]:
    """All statements except those in the body of `if TYPE_CHECKING`."""
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        yield node
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            todo += node.orelse
        else:
            todo += child_statements(node)


def imported(name: str, modules: dict[str, str]) -> set[str]:
    """The modules of the package that a module imports. Relative imports are not used in the package."""
    found = set()
    for node in run_time_statements(ast.parse(modules[name])):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert not node.level, name
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in modules else node.module)
    return (found & modules.keys()) - {name}


def cycles(edges: dict[str, set[str]]) -> list[list[str]]:
    names = sorted(edges)
    number = {name: i for i, name in enumerate(names)}
    components = strongly_connected_components(
        range(len(names)), lambda at: sorted(number[name] for name in edges[names[at]])
    )
    return [sorted(names[at] for at in one) for one in components if len(one) > 1]


def test_modules_do_not_import_each_other_in_a_cycle() -> None:
    modules = sources()
    edges = {name: imported(name, modules) for name in modules}
    assert sum(map(len, edges.values())) > len(modules)
    assert not cycles(edges)


def test_cycles_are_found() -> None:
    text = "from guideway import b\nif TYPE_CHECKING:\n    import guideway.c\ndef f():\n    from guideway.d import x\n"
    modules = {"guideway.a": text, **{f"guideway.{one}": "" for one in "bcd"}}
    assert imported("guideway.a", modules) == {"guideway.b", "guideway.d"}
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]
