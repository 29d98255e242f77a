"""Layout of the tests: `tests/unit` mirrors `src/guideway`, and programs are outside the folders of tests."""

from __future__ import annotations

import ast
import re
from collections import defaultdict

from .repository import PACKAGE, ROOT, python_files, statements

TESTS = ROOT / "tests"
UNIT = TESTS / "unit"
# Test modules of the whole package, in addition to those of the modules of src/guideway.
WHOLE_PACKAGE = {"test_public_api.py"}


def test_folders_of_unit_tests_are_packages() -> None:
    folders = {path.parent.relative_to(UNIT) for path in python_files(UNIT)}
    unknown = sorted(str(folder) for folder in folders if not (PACKAGE / folder).is_dir())
    assert not unknown, "folders of tests/unit without a package of the same path in src/guideway"


def test_unit_tests_of_the_package_itself_name_a_module() -> None:
    modules = {f"test_{path.name}" for path in PACKAGE.glob("*.py")}
    unknown = sorted({path.name for path in UNIT.glob("test_*.py")} - modules - WHOLE_PACKAGE)
    assert not unknown, "move these files to the folder of the package that they test"


def test_unit_folders_have_only_tests() -> None:
    """Fixtures of one folder are in its `conftest.py`; everything else that is shared is in tests/helpers."""
    others = sorted(str(path.relative_to(UNIT)) for path in python_files(UNIT) if not path.name.startswith("test_"))
    assert {name.rpartition("/")[2] for name in others} <= {"__init__.py", "conftest.py"}, (
        "helpers belong in tests/helpers"
    )


def test_programs_are_campaigns_or_suites() -> None:
    programs = {path for path in python_files(TESTS) if re.search(r"^if __name__ ==", path.read_text("utf-8"), re.M)}
    outside = sorted(
        str(path.relative_to(TESTS))
        for path in programs
        if not {"campaigns", "suites"} & set(path.relative_to(TESTS).parts)
    )
    assert programs
    assert not outside, "programs belong in tests/campaigns"


def is_docstring(line: ast.stmt) -> bool:
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)


def test_helpers_exist_once() -> None:
    """No two functions of the tests have the same parameters and body, whatever their names."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in python_files(TESTS):
        for node in statements(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("test_"):
                body = [ast.dump(line) for line in node.body if not is_docstring(line)]
                if len("".join(body)) > 300:  # shorter bodies are trivial
                    found["\n".join(body)].append(f"{path.relative_to(TESTS)}: {node.name}")
    twice = [names for names in found.values() if len(names) > 1]
    assert found
    assert not twice, "move these functions to tests/helpers"
