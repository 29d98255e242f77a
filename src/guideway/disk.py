"""The cache on disk: small immutable files under content-addressed names, shared by any number of processes.

An entry is written under a temporary name and renamed, so a reader sees all of it or nothing. It begins with a header
that names the format and holds a checksum over the entry's name and content; whatever does not agree (a truncated or
flipped file, another format, a file under another's name) is dropped and counts as missing. There are no locks and no
index: a network file system will do, and a process killed at any point leaves at most a temporary file, which the next
writer removes. Nothing here raises because the disk is full, read-only or gone: the cache is then simply empty.

`GUIDEWAY_CACHE_DIR` says where (default: `$XDG_CACHE_HOME/guideway`, else `~/.cache/guideway`); empty turns the disk
off. Whoever wrote a file decides what is compiled, so only files that are this user's (or root's), and that nobody else
may write, are read. `GUIDEWAY_CACHE_BYTES` bounds the folder (default: 1 GiB); the least recently used entries go
first. `GUIDEWAY_CACHE=0` turns every cache off, as `set_enabled(False)` does for this process and `disabled()` for a
`with` block.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import socket
import stat
import struct
import time
import warnings
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from pathlib import Path

from guideway._kernel import checksum

__all__ = ["DiskCache", "DiskStatistics", "Entry", "cache", "disabled", "is_enabled", "set_enabled"]

FORMAT = 4
_MAGIC = b"GUIDEWAY"
_HEADER = struct.Struct("<8sQQQ")  # magic, format, checksum, payload bytes: 32 bytes, so that payloads are aligned
_NAME = re.compile(r"([a-z][a-z0-9-]*)\.([0-9a-f]{8,128})\.entry")
_TEMPORARY = re.compile(r"writing-([0-9a-f]+)-([0-9]+)-[0-9a-f]+\.tmp")
# No waiting at pipes, no following of links, and bytes as they are.
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_STALE_SECONDS = 3600  # a temporary file this old has no writer any more, wherever that writer ran
_TOUCH_SECONDS = 60  # how exact "recently used" is: a read marks the entry at most this often
_DEFAULT_BYTES = 1 << 30

_HOST = hashlib.sha256(socket.gethostname().encode()).hexdigest()[:12]


@dataclass
class DiskStatistics:
    """What this process saw. `damaged`: entries that were dropped; `refused`: writes that the disk did not take."""

    hits: int = 0
    misses: int = 0
    writes: int = 0
    damaged: int = 0
    evicted: int = 0
    refused: int = 0


@dataclass(frozen=True)
class Entry:
    """One file of the cache; `used` is the time of its last use, in seconds since the epoch."""

    kind: str
    key: str
    size: int
    used: float
    path: Path


class DiskCache:
    """Entries by (kind, key) under a folder, at most `budget_bytes` together.

    `kind`: what it is, with the number of its own format (lower case, `program-1`). `key`: a hex digest of everything
    that the content follows from. Two writers of one key write the same content, so it does not matter who is last.
    """

    def __init__(self, root: Path, budget_bytes: int = _DEFAULT_BYTES) -> None:
        self.root = root
        self.folder = root / f"guideway-cache-{FORMAT}"
        self.budget_bytes = budget_bytes
        self.statistics = DiskStatistics()

    def get(self, kind: str, key: str) -> memoryview | None:
        """The content, checked, or None. It is a private copy: what happens to the file later cannot change it."""
        path = self._path(kind, key)
        try:
            data, used = self._read(path)
        except OSError:
            self.statistics.misses += 1
            return None
        payload = None if data is None else _payload(path.name, data)
        if payload is None:
            self.statistics.damaged += 1
            self.statistics.misses += 1
            _remove(path)
            return None
        self.statistics.hits += 1
        if time.time() - used > _TOUCH_SECONDS:
            with contextlib.suppress(OSError):
                os.utime(path)
        return payload

    def put(self, kind: str, key: str, data: bytes | bytearray | memoryview) -> bool:
        """Keep the content; False where the disk does not take it. Older entries go until the budget holds."""
        path = self._path(kind, key)
        data = memoryview(data).cast("B")
        if len(data) + _HEADER.size > self.budget_bytes:
            self.statistics.refused += 1
            return False
        temporary = self.folder / f"writing-{_HOST}-{os.getpid()}-{secrets.token_hex(8)}.tmp"
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(os.open(temporary, _WRITE, 0o644), "wb", buffering=0) as file:
                _write_all(file.fileno(), _HEADER.pack(_MAGIC, FORMAT, _checksum(path.name, data), len(data)))
                _write_all(file.fileno(), data)
            os.replace(temporary, path)
        except OSError:
            _remove(temporary)
            self.statistics.refused += 1
            return False
        self.statistics.writes += 1
        self.trim()
        return True

    def drop(self, kind: str, key: str) -> None:
        """Forget an entry that turned out to be of no use."""
        _remove(self._path(kind, key))

    def entries(self) -> list[Entry]:
        """What is there, least recently used first."""
        found = []
        for name, status in self._files():
            if known := _NAME.fullmatch(name):
                found.append(Entry(known[1], known[2], status.st_size, status.st_mtime, self.folder / name))
        return sorted(found, key=lambda entry: (entry.used, entry.key))

    def trim(self) -> None:
        """Remove what dead writers left, and then the least recently used entries until the budget holds."""
        total = 0  # of what can be evicted: a stranger's file, or what another host writes, must not cost all entries
        for name, status in self._files():
            if _NAME.fullmatch(name):
                total += status.st_size
            elif _TEMPORARY.fullmatch(name) and _is_orphan(name, status):
                _remove(self.folder / name)
        if total <= self.budget_bytes:
            return
        for entry in self.entries():
            if total <= self.budget_bytes * 9 // 10:  # some room, so that not every write has to evict
                break
            _remove(entry.path)
            self.statistics.evicted += 1
            total -= entry.size

    def verify(self) -> tuple[int, list[str]]:
        """Check every entry: how many are whole, and the names of the damaged ones, which are dropped."""
        whole, damaged = 0, []
        for entry in self.entries():
            try:
                data, _ = self._read(entry.path)
            except OSError:
                continue  # deleted meanwhile
            if data is None or _payload(entry.path.name, data) is None:
                damaged.append(entry.path.name)
                _remove(entry.path)
            else:
                whole += 1
        return whole, damaged

    def clear(self) -> int:
        """Remove every entry, of other formats too, and say how many; nothing else in the folder is touched."""
        count = 0
        with contextlib.suppress(OSError):
            for folder in self.root.glob("guideway-cache-*"):
                if folder.is_symlink():
                    continue
                for path in folder.glob("*"):
                    if path.suffix in (".entry", ".tmp"):
                        count += path.suffix == ".entry"
                        _remove(path)
                with contextlib.suppress(OSError):
                    folder.rmdir()
        return count

    def as_dict(self) -> dict[str, int | str]:
        """Where, how much, and the statistics of this process."""
        entries = self.entries()
        used = sum(entry.size for entry in entries)
        known = {"folder": str(self.root), "entries": len(entries), "bytes": used, "budget_bytes": self.budget_bytes}
        return {**known, **asdict(self.statistics)}

    def _read(self, path: Path) -> tuple[bytes | None, float]:
        """The whole file, and when it was used; None for what is no file of ours: a link, a pipe, a folder, what
        another user may have written, or more than the cache may hold. Read and not mapped: a file that is changed or
        cut off later must not reach what was checked."""
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return None, 0
        with open(os.open(path, _READ), "rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            if not _is_ours(status) or status.st_size > self.budget_bytes:
                return None, 0
            return file.read(status.st_size + 1), status.st_mtime

    def _path(self, kind: str, key: str) -> Path:
        name = f"{kind}.{key}.entry"
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not the name of an entry: a kind in lower case, and a hex digest")
        return self.folder / name

    def _files(self) -> Iterator[tuple[str, os.stat_result]]:
        try:
            with os.scandir(self.folder) as found:
                for file in found:
                    with contextlib.suppress(OSError):  # deleted meanwhile
                        yield file.name, file.stat(follow_symlinks=False)
        except OSError:
            return


def _is_ours(status: os.stat_result) -> bool:
    """Whether this is a plain file that nobody but this user, or root, can have written."""
    if not stat.S_ISREG(status.st_mode):
        return False
    if not hasattr(os, "geteuid"):  # Windows: the folder's own rights must do
        return True
    return status.st_uid in (0, os.geteuid()) and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _payload(name: str, data: bytes) -> memoryview | None:
    """The content of a file of this name; None where anything about it is wrong."""
    if len(data) < _HEADER.size:
        return None
    magic, version, checksum, length = _HEADER.unpack_from(data)
    payload = memoryview(data)[_HEADER.size :]
    if magic != _MAGIC or version != FORMAT or length != len(payload) or checksum != _checksum(name, payload):
        return None
    return payload


def _checksum(name: str, data: bytes | bytearray | memoryview) -> int:
    # Against damage, not against malice: who may write here may do more.
    return checksum(data, checksum(name.encode(), 0))


def _write_all(file: int, data: bytes | bytearray | memoryview) -> None:
    view = memoryview(data).cast("B")
    while view:
        view = view[os.write(file, view) :]


def _is_orphan(name: str, status: os.stat_result) -> bool:
    """Whether nobody writes this temporary file any more."""
    if time.time() - status.st_mtime > _STALE_SECONDS:
        return True
    known = _TEMPORARY.fullmatch(name)
    if known is None or known[1] != _HOST or os.name == "nt":  # there, asking after a process may end it
        return False
    try:
        os.kill(int(known[2]), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            path.rmdir()  # not ours, and in the way; only if it is empty
        else:
            path.unlink()


# -- which cache, and whether -----------------------------------------------------------------------------------------

_enabled = True
_off: ContextVar[bool] = ContextVar("guideway_cache_off", default=False)
_open: dict[tuple[str, int], DiskCache] = {}


def is_enabled() -> bool:
    """Whether caches are used here and now."""
    return _enabled and not _off.get() and os.environ.get("GUIDEWAY_CACHE", "1") != "0"


def set_enabled(enabled: bool) -> None:
    """Turn every cache of compiled things on or off, for this process."""
    global _enabled
    _enabled = enabled


@contextlib.contextmanager
def disabled() -> Iterator[None]:
    """In this block (this thread or task) nothing is looked up and nothing is kept."""
    before = _off.set(True)
    try:
        yield
    finally:
        _off.reset(before)


def cache() -> DiskCache | None:
    """The cache on disk, as the environment says now; None where there is none, or caches are turned off."""
    if not is_enabled():
        return None
    root = os.environ.get("GUIDEWAY_CACHE_DIR")
    if root is None:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        root = os.path.join(base, "guideway") if os.path.isabs(base) else ""
    if not root:
        return None
    try:
        key = (os.path.abspath(root), _budget())
    except OSError:  # relative to a working directory that is gone
        return None
    found = _open.get(key)
    if found is None:
        found = _open[key] = DiskCache(Path(key[0]), key[1])
    return found


def _budget() -> int:
    given = os.environ.get("GUIDEWAY_CACHE_BYTES", "")
    try:
        return max(0, int(given)) if given else _DEFAULT_BYTES
    except ValueError:
        warnings.warn(f"GUIDEWAY_CACHE_BYTES={given!r} is no number of bytes; not used", RuntimeWarning, stacklevel=3)
        return _DEFAULT_BYTES
