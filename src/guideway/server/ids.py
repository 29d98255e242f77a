"""`new_id`: random identifiers of requests."""

from __future__ import annotations

import os
from collections import deque

__all__ = ["new_id"]

_BYTES, _COUNT = 16, 256
_ids: deque[str] = deque()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_ids.clear)  # a child must not give the same identifiers as its parent


def new_id() -> str:
    """Return an identifier of 32 hexadecimal digits that cannot be guessed. Any thread may call it.

    The random bytes of many identifiers are read from the system together. Each such call lets another thread take the
    interpreter's lock (GIL), so a request would wait for the generation loop.
    """
    while True:
        try:
            return _ids.popleft()
        except IndexError:
            data = os.urandom(_BYTES * _COUNT)
            _ids.extend(data[at : at + _BYTES].hex() for at in range(0, len(data), _BYTES))
