"""The hard files of MaskBench with one vocabulary: verdicts, and the CPU time of compiles and steps.

All of them: `make hard`; a sample runs with every other test.
"""

from __future__ import annotations

import pytest

from .hard import HARD, Report, files, judge, known_refusals

pytest.importorskip("tiktoken", reason="needs tiktoken, which reads Llama 3's ranks")
pytest.importorskip("llama_models", reason="needs llama-models, whose package holds Llama 3's vocabulary")
pytestmark = pytest.mark.skipif(not HARD.exists(), reason=f"there is no {HARD.name}")

SAMPLE = (  # a file of each class of defect that was found
    "Github_easy---o24544",  # integers of draft 4
    "Github_hard---o9767",  # a mask that depends on earlier schemas
    "JsonSchemaStore---asmdef",  # items that must differ
    "JsonSchemaStore---golangci-lint",  # many listed names
    "JsonSchemaStore---rust-project",  # items that must differ and hold such items
    "JsonSchemaStore---solidaritySchema",
    "Github_medium---o39217",  # objects that hold themselves
    "JsonSchemaStore---sourcemap-v3",  # items that must differ and hold themselves in several ways
    "JsonSchemaStore---aerleon-definitions.schema",  # counts inside counts
)


def check(report: Report) -> None:
    """Every verdict is right, and only files of the list are refused."""
    assert report.wrong == []
    assert set(report.refused) <= known_refusals()


def test_a_sample() -> None:
    """The bars of time are checked by the tests marked slow: the CPU time of a step depends on the machine's other load."""
    report = judge([path for path in files() if path.stem in SAMPLE])
    check(report)
    assert report.files == len(SAMPLE)
    assert not report.refused


def test_the_list_of_refusals_names_files() -> None:
    names = {path.stem for path in files()}
    assert known_refusals() <= names


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_all_in_shuffled_orders(seed: int) -> None:
    report = judge(files(), seed)
    check(report)
    assert report.slow == []
    assert known_refusals() == set(report.refused), "a file that is no longer refused leaves hard_refused.txt"
