"""Sizes in bytes: from texts such as "24GB", of a model before it is loaded, and of this process."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from guideway import loading
from guideway.arguments import short_repr
from guideway.sessions.prefix_cache import PREFIX_BYTES

__all__ = ["estimated_bytes", "parse_bytes", "resident_bytes", "weight_bytes"]

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
_SIZE = re.compile(r"\s*([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([KMGT]I?)?B?\s*", re.IGNORECASE)
_PART = re.compile(r"(.*)-\d{5}-of-\d{5}\.gguf")
_LARGEST_GRAPH = 64 << 20
_OVERHEAD = 1.25
"""Estimated memory of a model divided by the size of its files: it includes buffers, and copies that libraries make."""


def parse_bytes(size: str | int, name: str = "budget") -> int:
    """Return a size such as "24GB" (10^9), "16GiB" (2^30) or an int, in bytes.

    Raises:
        ValueError: The size is malformed or not positive. `name` is the name of the argument, for the message.
    """
    if isinstance(size, int) and not isinstance(size, bool) and size > 0:
        return size
    match = _SIZE.fullmatch(size) if isinstance(size, str) else None
    found = int(float(match[1]) * _UNITS[(match[2] or "").upper()]) if match else 0
    if found <= 0:
        raise ValueError(
            f'{name} must be a number of bytes such as "24GB", "16GiB" or 8_000_000_000, got {short_repr(size)}'
        )
    return found


def weight_bytes(name: str) -> int | None:
    """Return the size of the weight files that `load(name)` reads, in bytes.

    0 for a model served by an API; None if no such files are found on this machine.
    """
    if loading.is_remote(name):
        return 0
    kind, _, rest = name.partition(":")
    place: Path | None = Path(loading.__file__).parent / "tiny" / "model.onnx" if name == "tiny" else None
    if place is None and rest:
        place = Path(rest) if os.path.exists(rest) else _hub_folder(rest) if kind in ("hf", "mlx") else None
    sizes = [file.stat().st_size for file in _weights(place) if file.is_file()] if place is not None else []
    return sum(sizes) if sizes else None


def estimated_bytes(name: str) -> int | None:
    """Return the estimated memory of the model that `load(name)` returns, in bytes, prefix cache included.

    0 for a model served by an API; None if its files are not found on this machine.
    """
    weights = weight_bytes(name)
    return int(weights * _OVERHEAD) + PREFIX_BYTES if weights else weights


def _weights(place: Path) -> Iterable[Path]:
    """Return the weight files of a model.

    In a folder, these are the files of the first file format that is found. A model that is divided into several files
    has all of them, except an ONNX graph of more than `_LARGEST_GRAPH` bytes, which is returned alone.
    """
    if place.is_dir():
        for pattern in ("*.safetensors", "model.onnx", "onnx/model.onnx", "*.onnx", "*.bin", "*.pt"):
            if found := sorted(place.glob(pattern)):
                return _weights(found[0]) if found[0].suffix == ".onnx" else found
        return []
    if place.suffix == ".onnx":
        small = place.stat().st_size <= _LARGEST_GRAPH
        graph = place.read_bytes() if small else b""  # a graph whose weights are in other files contains their names
        return [place, *(file for file in place.parent.iterdir() if file != place and file.name.encode() in graph)]
    series = _PART.fullmatch(place.name)
    if series is None:
        return [place]
    return [file for file in place.parent.iterdir() if (one := _PART.fullmatch(file.name)) and one[1] == series[1]]


def _hub_folder(name: str) -> Path | None:
    """Return the folder of the newest snapshot of a model in the cache of the Hugging Face Hub; None: there is none."""
    home = os.environ.get("HF_HOME") or os.path.join(os.path.expanduser("~"), ".cache", "huggingface")
    cache = Path(os.environ.get("HF_HUB_CACHE") or os.path.join(home, "hub"))
    snapshots = cache / f"models--{name.replace('/', '--')}" / "snapshots"
    found = [path for path in snapshots.glob("*") if path.is_dir()]
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


def resident_bytes() -> int | None:
    """Return the resident memory of this process in bytes; None if the operating system does not report it."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")
