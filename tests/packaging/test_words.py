"""The prose of the repository contains few words to avoid (tools/count_words.py)."""

import pytest
from tools.count_words import LIMITS, area_occurrences, cpp_prose, markdown_prose, python_prose


@pytest.mark.parametrize("area", [area for area, limit in LIMITS.items() if limit is not None])
def test_words_to_avoid(area: str) -> None:
    found = [str(occurrence) for occurrence in area_occurrences(area)]
    limit = LIMITS[area]
    assert limit is not None
    assert len(found) <= limit, "\n".join(found)


def test_prose_of_markdown_excludes_code() -> None:
    assert markdown_prose("one\n```python\ntwo\n```\n    three\nfour\n").split() == ["one", "four"]


def test_prose_of_python_is_comments_and_docstrings() -> None:
    source = '"""one"""\nx = "two"  # three\n\n\ndef f():\n    """four"""\n    return "five"\n'
    assert python_prose(source).split() == ['"""one"""', "#", "three", '"""four"""']


def test_prose_of_cpp_is_comments() -> None:
    assert cpp_prose('int x; // one\nauto s = "// two"; /* three */').split() == ["//", "one", "/*", "three", "*/"]
