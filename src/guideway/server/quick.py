"""`QuickBodies`: which bodies of requests the thread of the event loop may prepare itself."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from guideway.server.constraint_workers import LEAST_BYTES

__all__ = ["QUICK_SECONDS", "QuickBodies"]

QUICK_SECONDS = 0.05
"""The processor time up to which the first preparation is quick, which cannot use cached results.

Usually the results are cached later, so that the event loop needs less than a millisecond.
"""

_KNOWN = 4096
"""The maximum number of keys whose times are stored."""

_VARYING = frozenset(("messages", "prompt", "seed", "user", "metadata", "max_tokens", "stream", "stream_options"))
"""The fields that are not part of a key: the preparation of small ones is always quick."""


class QuickBodies:
    """The processor times of the first preparation of bodies in a background thread, by constraint and options.

    A body is quick if it is small, and a body with the same constraint and options was quick. It is then prepared in
    the thread of the event loop. This saves two changes of the thread, which delay a request while a generation loop
    computes. Use the object in the thread of the event loop.
    """

    def __init__(self) -> None:
        self._seconds: OrderedDict[bytes, float] = OrderedDict()

    def key_of(self, url: str, model: str, body: Mapping[str, Any], size: int | None) -> bytes | None:
        """Return the key of a body's constraint and options; None: the body cannot be quick.

        Args:
            url: The endpoint.
            model: The name of the model.
            body: The body.
            size: The number of bytes of the body; None: unknown.
        """
        if size is None or size >= LEAST_BYTES or not isinstance(body.get("prompt", ""), str):
            return None
        fields = {name: value for name, value in body.items() if name not in _VARYING}
        text = json.dumps([url, model, fields], separators=(",", ":"))
        return hashlib.blake2b(text.encode(), digest_size=16).digest()

    def is_quick(self, key: bytes) -> bool:
        """Return whether a body with this key was prepared before, and was quick."""
        seconds = self._seconds.get(key)
        if seconds is None:
            return False
        self._seconds.move_to_end(key)
        return seconds <= QUICK_SECONDS

    def add(self, key: bytes, seconds: float) -> None:
        """Store the processor time of a preparation, if it is the first one with this key."""
        self._seconds.setdefault(key, seconds)
        while len(self._seconds) > _KNOWN:
            self._seconds.popitem(last=False)
