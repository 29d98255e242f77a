"""`Tags` as a structural tag, the JSON by which vLLM and SGLang describe free text with constrained parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from guideway.constraints import Constraint, Tags

__all__ = ["structural_tag_of"]


def structural_tag_of(constraint: Constraint[Any], export: Callable[[Constraint[Any]], str]) -> dict[str, Any] | None:
    """Return the structural tag that allows the same texts; None if there is none.

    A structural tag for free text cannot state a minimum or maximum number of tags. For tags between separators it can
    state only a minimum of 1 and a maximum of 1.

    Args:
        constraint: The constraint; None is returned for all classes but `Tags`.
        export: Returns the constraint on the content of a tag as a grammar.

    Raises:
        UnsupportedError: The content of a tag cannot be exported.
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
