"""The disk cache: small immutable files with content-addressed names, shared by any number of processes.

An entry is written to a temporary file and renamed, so readers see a complete entry or none. Its header has the format
number and a checksum over name and content. An entry that does not match (truncated, changed, other format, wrong name)
is deleted and counts as a miss. There are no locks and no index, so network file systems can be used. A process that is
killed leaves at most a temporary file, which a later writer deletes. If the disk is full, read-only or missing, no
function raises; entries are not stored or not found.

Environment variables:
    GUIDEWAY_CACHE_DIR: The folder. Default: `$XDG_CACHE_HOME/guideway`, else `~/.cache/guideway`. Empty: no disk cache.
    GUIDEWAY_CACHE_BYTES: Maximum size (default: 1 GiB). The least recently used entries are deleted first.
    GUIDEWAY_CACHE: "0" turns all caches off, as `set_enabled(False)` does for the process and `disabled()` for a block.

The content of an entry determines what is compiled. Therefore only files that belong to this user or root and are not
writable by others are read; on Windows, the permissions of the folder must ensure this.
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
_HEADER = struct.Struct("<8sQQQ")  # magic, format, checksum, payload bytes; 32 bytes, which aligns the payload
_NAME = re.compile(r"([a-z][a-z0-9-]*)\.([0-9a-f]{8,128})\.entry")
_TEMPORARY = re.compile(r"writing-([0-9a-f]+)-([0-9]+)-[0-9a-f]+\.tmp")
# Do not block on pipes, do not follow links, do not translate line ends.
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_STALE_SECONDS = 3600  # the writer of a temporary file that is older than this is assumed to have ended, on any host
_TOUCH_SECONDS = 60  # a read updates the time of last use only if it is older than this
_DEFAULT_BYTES = 1 << 30
_SCAN_SECONDS = 60  # `put` reads the folder again after this time
_SCAN_PARTS = 64  # `put` also reads the folder after this process has written `budget_bytes` divided by this number

_HOST = hashlib.sha256(socket.gethostname().encode()).hexdigest()[:12]


@dataclass
class DiskStatistics:
    """What one `DiskCache` counted in this process.

    `damaged`: entries that `get` found invalid and tried to delete: the header did not match, or the file was no
    regular file, was larger than `budget_bytes`, or could have been written by another user. Each one is also a miss.
    `verify` does not change this number. `refused`: entries that were not stored, because they are larger than
    `budget_bytes` or could not be written.
    """

    hits: int = 0
    misses: int = 0
    writes: int = 0
    damaged: int = 0
    evicted: int = 0
    refused: int = 0


@dataclass(frozen=True)
class Entry:
    """One file of the cache. `used`: time of last use, in seconds since the epoch."""

    kind: str
    key: str
    size: int
    used: float
    path: Path


class DiskCache:
    """Entries by (kind, key) in a folder. `put` evicts entries if they have more than `budget_bytes` bytes in total.

    `kind` is a lower-case name with the number of its format (`program-1`). `key` is a hex digest of everything that
    determines the content. Writers of the same key write the same content, so their order does not matter.
    """

    def __init__(self, root: Path, budget_bytes: int = _DEFAULT_BYTES) -> None:
        self.root = root
        self.folder = root / f"guideway-cache-{FORMAT}"
        self.budget_bytes = budget_bytes
        self.statistics = DiskStatistics()
        self._scanned = 0.0  # when `trim` last read the folder
        self._left = 0  # the bytes that `put` may write before `trim` reads the folder again

    def get(self, kind: str, key: str) -> memoryview | None:
        """Return the content of an entry after checking it; None: there is no valid entry.

        The content is a copy, so later changes of the file do not affect it.
        """
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
        """Store an entry, and evict the least recently used entries if all exceed `budget_bytes` (see `trim`).

        The folder can have thousands of files, so `put` reads it only if it was last read more than 60 seconds ago, or
        if this process has since written more than a 64th of `budget_bytes`, or more bytes than `budget_bytes` then had
        room for. So several writing processes can together exceed `budget_bytes`, each by at most a 64th of it.

        Returns True if the entry was stored, and False if it is larger than `budget_bytes` or cannot be written.
        """
        path = self._path(kind, key)
        data = memoryview(data).cast("B")
        if len(data) + _HEADER.size > self.budget_bytes:
            self.statistics.refused += 1
            return False
        temporary = self.folder / f"writing-{_HOST}-{os.getpid()}-{secrets.token_hex(8)}.tmp"
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(temporary, "wb", buffering=0, opener=lambda name, _: os.open(name, _WRITE, 0o644)) as file:
                _write_all(file.fileno(), _HEADER.pack(_MAGIC, FORMAT, _checksum(path.name, data), len(data)))
                _write_all(file.fileno(), data)
            os.replace(temporary, path)
        except OSError:
            _remove(temporary)
            self.statistics.refused += 1
            return False
        self.statistics.writes += 1
        self._left -= len(data) + _HEADER.size
        if self._left < 0 or time.monotonic() - self._scanned > _SCAN_SECONDS:
            self.trim()
        return True

    def drop(self, kind: str, key: str) -> None:
        """Delete an entry, if it exists."""
        _remove(self._path(kind, key))

    def entries(self) -> list[Entry]:
        """Return all entries, least recently used first."""
        found = []
        for name, status in self._files():
            if known := _NAME.fullmatch(name):
                found.append(Entry(known[1], known[2], status.st_size, status.st_mtime, self.folder / name))
        return sorted(found, key=lambda entry: (entry.used, entry.key))

    def trim(self) -> None:
        """Delete abandoned temporary files (`_is_orphan`) and, if the entries exceed `budget_bytes`, some entries.

        The least recently used entries are deleted until the others have at most 90 % of `budget_bytes`.
        """
        total = 0  # the bytes of entries; other files do not count
        for name, status in self._files():
            if _NAME.fullmatch(name):
                total += status.st_size
            elif _TEMPORARY.fullmatch(name) and _is_orphan(name, status):
                _remove(self.folder / name)
        self._scanned = time.monotonic()
        if total > self.budget_bytes:
            for entry in self.entries():
                if total <= self.budget_bytes * 9 // 10:  # leave room, so that not every write evicts
                    break
                _remove(entry.path)
                self.statistics.evicted += 1
                total -= entry.size
        self._left = min(self.budget_bytes - total, self.budget_bytes // _SCAN_PARTS)

    def verify(self) -> tuple[int, list[str]]:
        """Check every entry, and delete those that are damaged or that `_read` rejects.

        Returns the number of valid entries and the names of the deleted files.
        """
        whole, damaged = 0, []
        for entry in self.entries():
            try:
                data, _ = self._read(entry.path)
            except OSError:
                continue  # deleted by another process
            if data is None or _payload(entry.path.name, data) is None:
                damaged.append(entry.path.name)
                _remove(entry.path)
            else:
                whole += 1
        return whole, damaged

    def clear(self) -> int:
        """Delete all entries, those of other formats included, and temporary files.

        Returns the number of entries. Files that cannot be deleted are counted, too.
        """
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
        """Return the folder, the number and size of the entries, and the counters of this process."""
        entries = self.entries()
        used = sum(entry.size for entry in entries)
        known = {"folder": str(self.root), "entries": len(entries), "bytes": used, "budget_bytes": self.budget_bytes}
        return {**known, **asdict(self.statistics)}

    def _read(self, path: Path) -> tuple[bytes | None, float]:
        """Return the content of a file and its time of last use.

        The content is None if this is not a regular file, if `_is_ours` rejects it, or if it is larger than
        `budget_bytes`. The file is read, not mapped, so that later changes cannot affect content that was checked.
        Raises `OSError`.
        """
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return None, 0
        with open(path, "rb", buffering=0, opener=lambda name, _: os.open(name, _READ)) as file:
            status = os.fstat(file.fileno())
            if not _is_ours(status) or status.st_size > self.budget_bytes:
                return None, 0
            return file.read(status.st_size + 1), status.st_mtime

    def _path(self, kind: str, key: str) -> Path:
        name = f"{kind}.{key}.entry"
        if not _NAME.fullmatch(name):
            raise ValueError(f"an entry needs a lower-case kind and a key of 8 to 128 hex digits, got {name!r}")
        return self.folder / name

    def _files(self) -> Iterator[tuple[str, os.stat_result]]:
        try:
            with os.scandir(self.folder) as found:
                for file in found:
                    with contextlib.suppress(OSError):  # the file was deleted by another process
                        yield file.name, file.stat(follow_symlinks=False)
        except OSError:
            return


def _is_ours(status: os.stat_result) -> bool:
    """Return whether this is a regular file of this user or of root that only its owner can write.

    On Windows, only the kind of the file is checked.
    """
    if not stat.S_ISREG(status.st_mode):
        return False
    if not hasattr(os, "geteuid"):  # Windows: rely on the permissions of the folder
        return True
    return status.st_uid in (0, os.geteuid()) and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _payload(name: str, data: bytes) -> memoryview | None:
    """Return the content of a file after its header; None if the header does not match."""
    if len(data) < _HEADER.size:
        return None
    magic, version, checksum, length = _HEADER.unpack_from(data)
    payload = memoryview(data)[_HEADER.size :]
    if magic != _MAGIC or version != FORMAT or length != len(payload) or checksum != _checksum(name, payload):
        return None
    return payload


def _checksum(name: str, data: bytes | bytearray | memoryview) -> int:
    # The checksum detects damage. It does not protect against other programs of the same user.
    return checksum(data, checksum(name.encode(), 0))


def _write_all(file: int, data: bytes | bytearray | memoryview) -> None:
    view = memoryview(data).cast("B")
    while view:
        view = view[os.write(file, view) :]


def _is_orphan(name: str, status: os.stat_result) -> bool:
    """Return True if the writer of a temporary file has ended, or the file is old (`_STALE_SECONDS`).

    False if the writer has not ended, or if this is unknown.
    """
    if time.time() - status.st_mtime > _STALE_SECONDS:
        return True
    known = _TEMPORARY.fullmatch(name)
    if known is None or known[1] != _HOST or os.name == "nt":  # on Windows, os.kill would end the process
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
            path.rmdir()  # a folder has the name of an entry; it is removed only if it is empty
        else:
            path.unlink()


# -- selection of the cache -------------------------------------------------------------------------------------------

_enabled = True
_off: ContextVar[bool] = ContextVar("guideway_cache_off", default=False)
_open: dict[tuple[str, int], DiskCache] = {}


def is_enabled() -> bool:
    """Return whether caches of compiled constraints are enabled in this thread or task."""
    return _enabled and not _off.get() and os.environ.get("GUIDEWAY_CACHE", "1") != "0"


def set_enabled(enabled: bool) -> None:
    """Enable or disable all caches of compiled constraints in this process, in memory and on disk.

    `GUIDEWAY_CACHE=0` and `disabled` disable them in any case.
    """
    global _enabled
    _enabled = enabled


class _Disabled:
    """The context manager that `disabled` returns. A class is faster here than `contextlib.contextmanager`."""

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        self._before = _off.set(True)

    def __exit__(self, *_: object) -> None:
        _off.reset(self._before)


def disabled() -> contextlib.AbstractContextManager[None]:
    """Return a context manager that disables all caches of compiled constraints, for this thread or task."""
    return _Disabled()


def cache() -> DiskCache | None:
    """Return the disk cache that the environment variables select; None: they select none, or caches are disabled."""
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
    except OSError:  # a relative path, and the working directory was deleted
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
        warnings.warn(
            f"GUIDEWAY_CACHE_BYTES must be an integer number of bytes, got {given!r}; using the default",
            RuntimeWarning,
            stacklevel=3,
        )
        return _DEFAULT_BYTES
