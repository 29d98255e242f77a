"""Sessions on disk: one file with a header, a digest, a description in JSON, and compressed arrays. No pickle.

    8 bytes   magic
    4 bytes   number of the format
    4 bytes   size of the JSON
    8 bytes   size of all arrays before compression
    32 bytes  digest of all that follows
    the JSON, then the arrays one after the other, compressed

The arrays contain only the used positions of the caches. A file that is incomplete, or that belongs to another model,
is rejected before its arrays are decompressed. Decompression stops at the size that the header declares.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import struct
import zlib
from collections.abc import Mapping
from dataclasses import asdict
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from guideway.arguments import short_repr
from guideway.compiler import Automaton, compile
from guideway.engines.base import Arrays
from guideway.errors import GuidewayError, InvalidFileError, SnapshotError
from guideway.jsontext.decoder import loads
from guideway.sampling import Dry, Mirostat, Sampler
from guideway.sessions.divergence import Divergence
from guideway.sessions.kv_cache import KVCache
from guideway.tokenizers import Tokenizer

if TYPE_CHECKING:
    from guideway.sessions.model import ModelBase
    from guideway.sessions.session import Session

__all__ = ["load", "save", "tokenizer_digest"]

FORMAT = 2
_MAGIC = b"GWSESSON"
_HEADER = struct.Struct("<8sIIQ32s")
_TYPES = ("float32", "float16", "uint16", "uint8", "int64", "int32")
_MAX_JSON_BYTES = 1 << 26  # much more than the ids of the longest context need


def save(session: Session, path: Path) -> None:
    """Write the file atomically. See `Session.save` for the errors."""
    engine = session.model.engine
    arrays: dict[str, NDArray[Any]] = {}
    parts = session.parts()
    for part, cache in (("prefix", parts.prefix), ("cache", parts.cache)):
        if cache is not None and cache.length:
            found = session.model.run(engine.export, cache)
            arrays.update((f"{part}/{name}", np.asarray(array)) for name, array in found.items())
    if parts.logits is not None:
        arrays["logits"] = parts.logits
    meta = {
        "model": engine.fingerprint,
        "tokenizer": tokenizer_digest(session.tokenizer),
        "tokens": session.tokens,
        "seed": session.seed,
        "row": session.row,
        "sampler": _sampler(session, path),
        "memory": session.memory,
        "constrained_from": parts.constrained_from,
        "divergence": session.divergence,
        "arrays": [[name, array.dtype.name, list(array.shape)] for name, array in arrays.items()],
    }
    text = json.dumps(meta, default=_plain).encode()
    packer = zlib.compressobj(level=1)
    blocks = [packer.compress(np.ascontiguousarray(array).tobytes()) for array in arrays.values()]
    body = b"".join([text, *blocks, packer.flush()])
    size = sum(array.nbytes for array in arrays.values())
    header = _HEADER.pack(_MAGIC, FORMAT, len(text), size, hashlib.blake2b(body, digest_size=32).digest())
    try:
        temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
        try:
            temporary.write_bytes(header + body)
            os.replace(temporary, path)
        finally:
            with contextlib.suppress(OSError, ValueError):
                temporary.unlink()
    except (OSError, ValueError) as error:  # ValueError: the path has no name, a NUL character or a lone surrogate
        raise InvalidFileError.of("write", path, error) from error


def load(model: ModelBase, path: Path, constraint: object, session_class: type[Session]) -> Session:
    """See `Model.load_session`. `session_class`: the class of the result."""
    if constraint is not None and not isinstance(constraint, Automaton):
        constraint = compile(constraint, model.vocabulary)
    engine = model.engine
    meta, packed, size = _opened(path)
    if meta.get("model") != engine.fingerprint:
        raise SnapshotError(f"{path.name} was saved with a different model than {model.name}")
    if meta.get("tokenizer") != tokenizer_digest(model.tokenizer):
        raise SnapshotError(f"{path.name} was saved with a different tokenizer than that of {model.name}")
    try:
        tokens = model.vocabulary.checked(meta["tokens"])
        if size > (most := _most_bytes(model, len(tokens))):
            raise ValueError(f"the arrays must have at most {most} bytes for this model, got {size}")
        arrays = _arrays(meta["arrays"], packed, size)
        sampler = _sampler_of(meta["sampler"])
        kv = _kv(model, tokens, arrays)
        session = session_class(
            model, seed=int(meta["seed"]), row=int(meta["row"]), sampler=sampler, kv_cache=kv, tokens=tokens
        )
        session.check(tokens, 0)
        session.memory = meta["memory"]
        _constrain(session, meta["constrained_from"], constraint, path)
        if (divergence := meta.get("divergence")) is not None:
            position, token_id = divergence
            session.divergence = Divergence(int(position), int(token_id))
    except SnapshotError:
        raise
    except (GuidewayError, ValueError, TypeError, KeyError, AttributeError, OverflowError, zlib.error) as error:
        raise SnapshotError(f"{path.name} is damaged: {error}") from error
    return session


def _sampler(session: Session, path: Path) -> dict[str, Any]:
    """Return the sampler as JSON data.

    Raises `SnapshotError` for a sampler with functions, which a file cannot contain.
    """
    if own := [stage for stage in session.sampler.order if not isinstance(stage, str)]:
        raise SnapshotError(f"{path.name} cannot be saved: the sampler stage {short_repr(own[0])} is a function")
    return asdict(session.sampler)


def _sampler_of(saved: dict[str, Any]) -> Sampler:
    parts = {"dry": Dry, "mirostat": Mirostat}
    return Sampler(**{k: parts[k](**v) if k in parts and v is not None else v for k, v in saved.items()})


def tokenizer_digest(tokenizer: Tokenizer) -> str:
    """Return a digest of the vocabulary and of the BOS, EOS and padding ids."""
    facts = (tokenizer.vocabulary.fingerprint, tokenizer.bos_id, tokenizer.eos_ids, tokenizer.pad_id)
    return hashlib.blake2b(repr(facts).encode(), digest_size=16).hexdigest()


def _kv(model: ModelBase, tokens: list[int], arrays: Mapping[str, NDArray[Any]]) -> KVCache | None:
    """Return the KV cache of the session, with its logits; None: the file has no KV cache."""
    engine = model.engine
    prefix, cache = (_part(arrays, part) for part in ("prefix", "cache"))
    kept_prefix = model.run(engine.restore, prefix) if prefix else None
    kept = model.run(engine.restore, cache) if cache else kept_prefix
    logits = arrays.get("logits")
    if logits is not None and (
        logits.dtype != np.float32 or logits.shape != (min(engine.vocab_size, len(model.vocabulary)),)
    ):
        raise ValueError(f"logits must be float32 [vocabulary], got {logits.dtype} {logits.shape}")
    if kept is None:
        return None
    covered = kept.length - (kept_prefix.length if kept_prefix else 0)
    if not 0 <= covered <= len(tokens):
        raise ValueError(f"the KV cache must cover at most {len(tokens)} tokens, got {covered}")
    return KVCache(tuple(tokens[:covered]), kept, engine, kept_prefix, logits, shareable=False)


def _constrain(session: Session, start: int | None, constraint: Automaton | None, path: Path) -> None:
    if start is None:
        if constraint is not None:
            raise SnapshotError(
                f"{path.name} was saved without a constraint: omit constraint=, and call session.constrain()"
            )
        return
    if constraint is None:
        raise SnapshotError(f"{path.name} was saved with a constraint: pass it as constraint=")
    matcher = constraint.matcher()
    try:
        for token_id in session.tokens[int(start) :]:
            matcher.advance(token_id)
    except GuidewayError as error:
        raise SnapshotError(f"{path.name} was saved with a different constraint: {error}") from error
    session.constrain(matcher)


def _plain(value: object) -> object:
    """Convert NumPy scalars to types that JSON supports."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{short_repr(value)} cannot be saved")


def _part(arrays: Mapping[str, NDArray[Any]], part: str) -> Arrays:
    return {name.partition("/")[2]: array for name, array in arrays.items() if name.startswith(f"{part}/")}


def _most_bytes(model: ModelBase, count: int) -> int:
    """Return an upper bound of the size of the arrays: twice the size for a full context, estimated from one token.

    If caches cannot be truncated, the bound is for `count` tokens instead of the context.
    """
    engine = model.engine
    _, (cache,) = model.run(engine.forward, [[0]], [None])
    one = sum(np.asarray(array).nbytes for array in model.run(engine.export, cache).values())
    return (
        2 * one * (engine.context_size if engine.supports_rollback else count + 1) + 4 * engine.vocab_size + (1 << 16)
    )


def _opened(path: Path) -> tuple[dict[str, Any], bytes, int]:
    """Return the JSON description, the compressed arrays, and their declared size."""
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: the path has a NUL character or a lone surrogate
        raise InvalidFileError.of("read", path, error) from error
    if len(data) < _HEADER.size or data[:8] != _MAGIC:
        raise SnapshotError(f"{path.name} is not a saved session")
    _, version, text_size, size, digest = _HEADER.unpack_from(data)
    if version != FORMAT:
        raise SnapshotError(f"{path.name} has format {version}; this version reads format {FORMAT}")
    body = memoryview(data)[_HEADER.size :]
    if hashlib.blake2b(body, digest_size=32).digest() != digest:
        raise SnapshotError(f"{path.name} is damaged: its digest does not match")
    if text_size > _MAX_JSON_BYTES:
        raise SnapshotError(f"{path.name} has {text_size} bytes of JSON; the limit is {_MAX_JSON_BYTES}")
    try:
        meta = loads(bytes(body[:text_size]).decode())
    except (ValueError, GuidewayError) as error:
        raise SnapshotError(f"{path.name} is damaged: {error}") from error
    if not isinstance(meta, dict):
        raise SnapshotError(f"{path.name} is damaged: the JSON header is not an object")
    return meta, bytes(body[text_size:]), size


def _arrays(listed: list[tuple[str, str, list[int]]], packed: bytes, size: int) -> dict[str, NDArray[Any]]:
    parts: list[tuple[str, np.dtype[Any], tuple[int, ...], int]] = []
    for name, kind, sides in listed:
        if kind not in _TYPES or not all(type(side) is int and side >= 0 for side in sides):
            raise ValueError(f"unknown array type or shape: {kind} {sides}")
        dtype = np.dtype(kind)
        parts.append((name, dtype, tuple(sides), prod(sides) * dtype.itemsize))
    if sum(part[3] for part in parts) != size:
        raise ValueError("the arrays do not have the size that the header states")
    unpacker = zlib.decompressobj()
    raw = unpacker.decompress(packed, size + 1)
    if len(raw) != size or (not unpacker.eof and size):
        raise ValueError("the arrays do not have the size that the header states")
    found, at = {}, 0
    for name, dtype, shape, count in parts:
        found[name] = np.frombuffer(raw, dtype, count // dtype.itemsize, at).reshape(shape)
        at += count
    return found
