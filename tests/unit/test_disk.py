"""The disk cache: atomic entries, the byte budget, unusual folders, and the switch that disables it."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from guideway import disk
from guideway._kernel import checksum
from guideway.disk import DiskCache

KEY = "0123456789abcdef"


def only_file(cache: DiskCache) -> Path:
    (entry,) = cache.entries()
    return entry.path


def test_stored_entries_are_returned(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "new" / "folder")
    assert cache.get("program-1", KEY) is None
    assert cache.put("program-1", KEY, b"content")
    found = cache.get("program-1", KEY)
    assert found is not None
    assert bytes(found) == b"content"
    assert cache.get("program-2", KEY) is None
    assert cache.as_dict()["hits"] == 1
    assert cache.as_dict()["misses"] == 2
    assert [(e.kind, e.key) for e in cache.entries()] == [("program-1", KEY)]


@given(data=st.binary(max_size=200), where=st.integers(0, 10_000), how=st.sampled_from(["flip", "cut", "add", "zero"]))
@settings(max_examples=200)
def test_damage_is_found_dropped_and_healed(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, where: int, how: str
) -> None:
    cache = DiskCache(tmp_path_factory.mktemp("cache"))
    cache.put("a", KEY, data)
    path = only_file(cache)
    whole = path.read_bytes()
    at = where % len(whole)
    broken = {
        "flip": whole[:at] + bytes([whole[at] ^ (1 << where % 8)]) + whole[at + 1 :],
        "cut": whole[:at],
        "add": whole + b"\0",
        "zero": bytes(len(whole)),
    }[how]
    path.write_bytes(broken)
    assert cache.get("a", KEY) is None
    assert not path.exists()
    assert cache.statistics.damaged == 1
    assert cache.put("a", KEY, data)
    assert bytes(cache.get("a", KEY) or b"") == data


def test_a_file_under_anothers_name_or_of_another_format_is_foreign(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    cache.put("a", KEY, b"content")
    path = only_file(cache)
    path.rename(path.with_name(f"a.{'f' * 16}.entry"))
    assert cache.get("a", "f" * 16) is None
    cache.put("a", KEY, b"content")
    raw = bytearray(path.read_bytes())
    raw[8] += 1
    path.write_bytes(raw)
    assert cache.get("a", KEY) is None
    assert cache.statistics.damaged == 2


@pytest.mark.parametrize("kind", ["", "A", "../a", "a/b", "a.b"])
def test_names_cannot_leave_the_folder(tmp_path: Path, kind: str) -> None:
    with pytest.raises(ValueError, match="lower-case kind"):
        DiskCache(tmp_path).get(kind, KEY)
    with pytest.raises(ValueError, match="lower-case kind"):
        DiskCache(tmp_path).put("a", kind, b"")


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, budget_bytes=10_000)
    for number in range(9):
        assert cache.put("a", f"{number:016x}", bytes(1000))
        os.utime(cache.folder / f"a.{number:016x}.entry", (1000 + number, 1000 + number))
    assert cache.get("a", f"{0:016x}") is not None  # now the latest used
    assert cache.put("a", f"{9:016x}", bytes(1000))
    kept = {int(entry.key, 16) for entry in cache.entries()}
    assert {0, 9} <= kept
    assert 1 not in kept
    assert sum(entry.size for entry in cache.entries()) <= 10_000
    assert not cache.put("a", KEY, bytes(10_001))
    assert cache.statistics.refused == 1


def test_failed_eviction_costs_no_entry(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, budget_bytes=10_000)
    cache.put("a", KEY, b"content")
    (cache.folder / "README").write_bytes(bytes(20_000))
    (cache.folder / f"writing-{'0' * 12}-1-ab.tmp").write_bytes(bytes(20_000))  # another host's, at work
    assert cache.put("a", "f" * 16, b"content")
    assert len(cache.entries()) == 2
    assert cache.statistics.evicted == 0


def test_a_working_directory_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    monkeypatch.setenv("GUIDEWAY_CACHE_DIR", "here")
    gone.rmdir()
    assert disk.cache() is None


def test_files_of_killed_writers_are_removed(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    code = (
        "import os, signal, sys; from pathlib import Path; from guideway import disk\n"
        "disk.os.replace = lambda *paths: os.kill(os.getpid(), signal.SIGKILL)\n"
        "disk.DiskCache(Path(sys.argv[1])).put('a', '0123456789abcdef', bytes(1000))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert done.returncode != 0
    assert len(list(cache.folder.glob("*.tmp"))) == 1
    assert cache.entries() == []
    cache.put("a", KEY, b"content")
    assert list(cache.folder.glob("*.tmp")) == []


def test_temporary_files_of_the_living_stay_unless_they_are_old(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    cache.put("a", KEY, b"content")
    mine = cache.folder / f"writing-{disk._HOST}-{os.getpid()}-00.tmp"
    theirs = cache.folder / "writing-abcdef-1-00.tmp"  # of another host
    for path in (mine, theirs):
        path.write_bytes(b"")
    cache.trim()
    assert mine.exists()
    assert theirs.exists()
    for path in (mine, theirs):
        os.utime(path, (1, 1))
    cache.trim()
    assert not mine.exists()
    assert not theirs.exists()


def test_folders_that_cannot_be_written_are_an_empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"")
    cache = DiskCache(tmp_path / "file" / "below")
    assert not cache.put("a", KEY, b"content")
    assert cache.get("a", KEY) is None
    assert (cache.entries(), cache.verify(), cache.clear()) == ([], (0, []), 0)

    whole = DiskCache(tmp_path / "whole")
    whole.put("a", KEY, b"content")
    os.utime(only_file(whole), (1, 1))

    def refuse(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    for name in ("replace", "utime"):
        monkeypatch.setattr(disk.os, name, refuse)
    assert bytes(whole.get("a", KEY) or b"") == b"content"  # reading is enough for a hit
    assert not whole.put("a", "f" * 16, b"content")
    assert list(whole.folder.glob("*.tmp")) == []


def test_a_read_only_file_system_serves_and_takes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = DiskCache(tmp_path)
    cache.put("a", KEY, b"content")
    os.utime(only_file(cache), (1, 1))
    plain = os.open

    def for_reading(path: str, flags: int, *more: int) -> int:
        if flags & (os.O_CREAT | os.O_WRONLY | os.O_RDWR):
            raise OSError(errno.EROFS, "Read-only file system")
        return plain(path, flags, *more)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(os, "open", for_reading)
    for name in ("replace", "utime", "unlink", "rmdir"):
        monkeypatch.setattr(os, name, refuse)
    assert bytes(cache.get("a", KEY) or b"") == b"content"
    assert not cache.put("a", "f" * 16, b"content")
    cache.drop("a", KEY)
    cache.trim()
    cache.clear()
    assert bytes(cache.get("a", KEY) or b"") == b"content"
    assert cache.statistics.refused == 1


@pytest.mark.parametrize("answer", [errno.ESTALE, errno.EIO, errno.EACCES, errno.ETIMEDOUT, errno.ENOENT])
@pytest.mark.parametrize("call", ["lstat", "open", "fstat"])
def test_network_file_system_errors_are_misses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, answer: int
) -> None:
    """The entry is kept, because the error is a failure of the server and not a wrong content."""
    cache = DiskCache(tmp_path)
    cache.put("a", KEY, b"content")

    def away(*_: object, **__: object) -> None:
        raise OSError(answer, os.strerror(answer))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, away)
        assert cache.get("a", KEY) is None
    assert (cache.statistics.misses, cache.statistics.damaged) == (1, 0)
    assert bytes(cache.get("a", KEY) or b"") == b"content"
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", away)
        assert not cache.put("a", KEY, b"content")
        patch.setattr(os, "scandir", away)
        assert (cache.entries(), cache.verify()) == ([], (0, []))
        cache.trim()
    assert list(cache.folder.glob("*.tmp")) == []


def test_cache_has_no_locks() -> None:
    """The cache uses no locks: network file systems may not support them, and locks may remain after a crash."""
    source = Path(disk.__file__).read_text("utf-8")
    assert not {"fcntl", "flock", "lockf", "msvcrt"} & set(re.findall(r"\w+", source))


def test_verify_and_clear_touch_only_the_caches_own_files(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    for number in range(3):
        cache.put("a", f"{number:016x}", b"content")
    (tmp_path / "mine.txt").write_text("keep", "utf-8")
    (cache.folder / "mine.txt").write_text("keep", "utf-8")
    older = tmp_path / "guideway-cache-0"
    older.mkdir()
    (older / "a.00.entry").write_bytes(b"")
    path = cache.entries()[0].path
    path.write_bytes(path.read_bytes()[:-1])
    assert cache.verify() == (2, [path.name])
    assert cache.clear() == 3
    assert cache.entries() == []
    assert not older.exists()
    assert sorted(p.name for p in tmp_path.rglob("*.txt")) == ["mine.txt", "mine.txt"]


def test_cache_directory_and_switch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def root() -> str | None:
        found = disk.cache()
        return None if found is None else str(found.root)

    monkeypatch.setenv("GUIDEWAY_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("GUIDEWAY_CACHE_BYTES", "12345")
    found = disk.cache()
    assert found is not None
    assert (found.root, found.budget_bytes) == (tmp_path, 12345)
    assert disk.cache() is found
    with disk.disabled():
        assert root() is None
        seen: list[bool] = []
        thread = threading.Thread(target=lambda: seen.append(disk.is_enabled()))
        thread.start()
        thread.join()
        assert seen == [True]  # the block is of this thread
    disk.set_enabled(False)
    assert root() is None
    disk.set_enabled(True)
    monkeypatch.setenv("GUIDEWAY_CACHE", "0")
    assert root() is None
    monkeypatch.delenv("GUIDEWAY_CACHE")
    monkeypatch.setenv("GUIDEWAY_CACHE_DIR", "")
    assert root() is None
    monkeypatch.delenv("GUIDEWAY_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert root() == str(tmp_path / "xdg" / "guideway")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert root() == str(tmp_path / "home" / ".cache" / "guideway")
    monkeypatch.setenv("GUIDEWAY_CACHE_BYTES", "plenty")
    with pytest.warns(RuntimeWarning, match="got 'plenty'"):
        again = disk.cache()
    assert again is not None
    assert again.budget_bytes == 1 << 30


def test_a_read_marks_the_entry_as_used(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    cache.put("a", KEY, b"content")
    os.utime(only_file(cache), (1, 1))
    cache.get("a", KEY)
    assert time.time() - cache.entries()[0].used < 60


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes and links of Unix")
def test_foreign_files_are_neither_read_nor_followed(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "cache", budget_bytes=10_000)
    cache.put("a", KEY, b"content")
    path = only_file(cache)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine.tmp").write_bytes(b"keep")

    def pipe() -> None:
        os.mkfifo(path)

    def link() -> None:
        path.symlink_to("/dev/zero")

    def sparse() -> None:
        with open(path, "wb") as file:
            file.truncate(20 << 30)

    for make in (pipe, link, sparse, path.mkdir):
        path.unlink(missing_ok=True)
        make()
        assert cache.get("a", KEY) is None
        assert cache.put("a", KEY, b"content")
        assert bytes(cache.get("a", KEY) or b"") == b"content"
        path.unlink()
        make()
        assert cache.verify()[0] == 0
        assert not path.exists()
    (cache.root / "guideway-cache-0").symlink_to(elsewhere)
    assert cache.clear() == 0
    assert (elsewhere / "mine.tmp").exists()
    assert DiskCache(tmp_path / ("x" * 300)).clear() == 0


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no such owner here")
def test_files_of_other_users_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = DiskCache(tmp_path)
    cache.put("a", KEY, b"content")
    path = only_file(cache)
    assert path.stat().st_mode & 0o022 == 0
    for mode in (0o664, 0o646):
        path.chmod(mode)
        assert cache.get("a", KEY) is None
        assert not path.exists()
        cache.put("a", KEY, b"content")
    mine = os.fstat

    def of_a_stranger(file: int) -> os.stat_result:
        found = list(mine(file))
        found[4] = os.geteuid() + 1
        return os.stat_result(found)

    monkeypatch.setattr(os, "fstat", of_a_stranger)
    assert cache.get("a", KEY) is None
    assert cache.statistics.damaged == 3


def test_a_file_that_is_cut_off_after_it_was_read_does_no_harm(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    content = os.urandom(1 << 20)
    cache.put("a", KEY, content)
    found = cache.get("a", KEY)
    os.truncate(only_file(cache), 0)
    assert found == content


@given(data=st.binary(max_size=300), at=st.integers(0, 299), bits=st.integers(1, 255), seed=st.integers(0, 2**64 - 1))
def test_the_checksum_follows_every_byte_the_length_and_the_seed(data: bytes, at: int, bits: int, seed: int) -> None:
    known = checksum(data, seed)
    assert known == checksum(memoryview(bytearray(data)), seed)
    assert known != checksum(data + b"\0", seed)
    assert known != checksum(data, seed ^ 1)
    if at < len(data):
        assert known != checksum(data[:at] + bytes([data[at] ^ bits]) + data[at + 1 :], seed)
    # Two equal changes at a distance of one round of lanes do not cancel each other.
    twice = bytearray(data)
    for place in (at, at + 64):
        if place < len(data):
            twice[place] ^= 0x80
    assert (checksum(twice, seed) == known) == (bytes(twice) == data)


def test_the_checksum_is_the_same_everywhere() -> None:
    assert checksum(b"", 0) == 0xEE3D23B5BB1F0161
    assert checksum(bytes(range(200)), 7) == 0xE244FD2C17A9F091
