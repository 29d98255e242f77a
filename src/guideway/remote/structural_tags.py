"""`Tags` as a structural tag, the form that vLLM and SGLang take for free text with structured parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from guideway.constraints import Constraint, Tags

__all__ = ["structural_tag_of"]


def structural_tag_of(constraint: Constraint[Any], export: Callable[[Constraint[Any]], str]) -> dict[str, Any] | None:
    """Return the structural tag with the same texts, or None if the form has none.

    The form has no numbers of tags in free text, and at most one between separators.

    Args:
        constraint: The constraint.
        export: Returns the content of a tag as a grammar.

    Raises:
        UnsupportedError: A content cannot be exported.
    """
    if not isinstance(constraint, Tags):
        return None
    tags = [
        {
            "type": "tag",
            "begin": tag.begin,
            "content": {"type": "grammar", "grammar": export(tag.content)},
            "end": tag.end,
        }
        for tag in constraint.tags
    ]
    if constraint.separator is None:
        if constraint.least or constraint.most is not None:
            return None
        made: dict[str, Any] = {"type": "triggered_tags", "triggers": list(constraint.triggers), "tags": tags}
    else:
        if constraint.least > 1 or constraint.most not in (None, 1):
            return None
        made = {"type": "tags_with_separator", "separator": constraint.separator, "tags": tags}
        made |= {"at_least_one": constraint.least == 1, "stop_after_first": constraint.most == 1}
    return {"type": "structural_tag", "format": made}
