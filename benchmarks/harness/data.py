"""Schemas, instances and a vocabulary: MaskBench's, and Tekken's of mistral-common."""

from __future__ import annotations

import base64
import importlib.util
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

EOS = 2  # Tekken's </s>


def folder() -> Path:
    """Returns the folder of the data: `GUIDEWAY_DATA`, else ../shared/data next to the repository."""
    home = Path(os.environ.get("GUIDEWAY_DATA") or Path(__file__).parents[3] / "shared" / "data")
    if not (home / "maskbench-dev").is_dir():
        raise SystemExit(f"no maskbench-dev in {home}: set GUIDEWAY_DATA to the folder that holds it")
    return home


@dataclass(frozen=True)
class Case:
    """A schema, and instances with MaskBench's verdict."""

    name: str
    schema: Any
    instances: tuple[tuple[Any, bool], ...]


def cases() -> list[Case]:
    """All of maskbench-dev, by name."""
    found = []
    for path in sorted((folder() / "maskbench-dev").glob("*.json")):
        given = json.loads(path.read_text(encoding="utf-8"))
        instances = tuple((test["data"], bool(test["valid"])) for test in given["tests"])
        found.append(Case(path.stem, given["schema"], instances))
    return found


def spread(of: list[Case], count: int) -> list[Case]:
    """A fixed choice, evenly over the names (so over the sources too); always the same for the same data."""
    return of if count >= len(of) else [of[(2 * i + 1) * len(of) // (2 * count)] for i in range(count)]


def text_of(instance: Any) -> str:
    """An instance on one line, as models mostly write JSON."""
    return json.dumps(instance, ensure_ascii=False)


@cache
def tekken() -> tuple[bytes, ...]:
    """Bytes of Tekken's 131,072 tokens; the 1,000 special ones have none."""
    spec = importlib.util.find_spec("mistral_common")
    if spec is None or spec.origin is None:
        raise SystemExit("mistral-common is missing: pip install -e '.[bench]'")
    given = json.loads((Path(spec.origin).parent / "data" / "tekken_240718.json").read_text(encoding="utf-8"))
    special = given["config"]["default_num_special_tokens"]
    kept = given["vocab"][: given["config"]["default_vocab_size"] - special]
    return (b"",) * special + tuple(base64.b64decode(entry["token_bytes"]) for entry in kept)


def encoder() -> Callable[[str], list[int]]:
    """Text -> Tekken's own tokens."""
    import mistral_common
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    home = Path(str(mistral_common.__file__)).parent
    tokenizer = Tekkenizer.from_file(str(home / "data" / "tekken_240718.json"))
    return lambda text: list(tokenizer.encode(text, bos=False, eos=False))
