"""`EarlierResults`: the requests that have a result in an output file, and whether they have changed since."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from guideway.batch.answers import digest_of_line, outcome_of_line
from guideway.batch.ids import IdSet
from guideway.batch.ordering import BatchItem
from guideway.constraints import of, to_wire
from guideway.errors import InvalidFileError, UnsupportedError
from guideway.generation.protocol import AnyModel

__all__ = ["EarlierResults", "digest_of_settings"]


class EarlierResults:
    """The requests that have a result from an earlier run.

    Args:
        path: The output file, for messages.
        on_skip: A function that `skips` calls with each item that has a result; None: no function.

    Attributes:
        skipped: The number of items for which `skips` returned True.
        changed: The number of skipped items whose result was made from another line, or with another model or options.
    """

    def __init__(self, path: Path, on_skip: Callable[[BatchItem], None] | None = None) -> None:
        self._path, self._on_skip = path, on_skip
        self.skipped = self.changed = 0
        self._ids, self._digests = IdSet(), IdSet()

    def accept(self, entry: dict[str, Any]) -> bool:
        """Add a line of the output file. Returns whether it is the first result for its identifier, and not an error.

        Raises:
            InvalidFileError: It is not a line of an output file of a batch.
        """
        outcome = outcome_of_line(entry)
        if outcome is None:
            raise InvalidFileError(
                f'{self._path} has a line that is no result of a batch: expected "custom_id", a string or null, and'
                ' "text", "samples", "response" or "error"; give another file'
            )
        if outcome == "error" or not self._ids.add(entry["custom_id"]):
            return False
        self._digests.add(_key(entry["custom_id"], digest_of_line(entry)))
        return True

    def skips(self, custom_id: str, item: BatchItem) -> bool:
        """Return whether an item has a result. If it has, the item is counted and passed to `on_skip`."""
        if custom_id not in self._ids:
            return False
        self.skipped += 1
        # A result without a digest, such as one of an older version, counts as unchanged.
        if _key(custom_id, item.digest) not in self._digests and _key(custom_id, "") not in self._digests:
            self.changed += 1
        if self._on_skip is not None:
            self._on_skip(item)
        return True


def _key(custom_id: str, digest: str) -> str:
    return f"{digest}\0{custom_id}"


def digest_of_settings(model: AnyModel, output: object, options: Mapping[str, Any]) -> str:
    """Return a digest of the settings on which the results of a run depend: model name, constraint and options."""
    try:
        constraint = None if output is None else to_wire(of(output))["digest"]
    except UnsupportedError:  # a constraint of another library
        constraint = type(output).__qualname__
    found = [model.name, constraint, options]
    text = json.dumps(found, sort_keys=True, default=lambda value: "function" if callable(value) else repr(value))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
