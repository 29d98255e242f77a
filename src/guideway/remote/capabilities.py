"""What endpoints enforce: `Capabilities`, read from the dated files in `data/`. A caller can override each value."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

from guideway.arguments import short_repr
from guideway.caching import cached
from guideway.errors import InvalidConstraintError
from guideway.remote.subset import SchemaSubset

__all__ = ["Capabilities", "Evidence", "capabilities", "dialects", "guessed_dialect"]


@dataclass(frozen=True)
class Evidence:
    """The source of a statement (`claim`) about an endpoint. `kind` is "documentation" or "probe" (measured)."""

    claim: str
    source: str
    date: str
    kind: str = "documentation"


@dataclass(frozen=True)
class Capabilities:
    """Which constraints an endpoint takes, and which of them it enforces.

    Attributes:
        name: The name of the dialect, such as "openai" or "vllm".
        title: The name of the endpoint in tables.
        updated: The date of the data.
        enforces: Whether the endpoint enforces every constraint that it takes.
        routes: The ways to send a constraint, best first.
        subset: The supported part of JSON Schema.
        limits: Published limits: "properties", "depth", "characters", "enum_values", "unions", "optional",
            "grammar_bytes".
        continues: Whether the endpoint can continue the beginning of an answer that a request contains (a prefill).
        logprobs: How `score` gets log-probabilities: "prompt" (of given texts), "top" (of the most probable first
            tokens), or "" (not at all).
        whole_routes: Routes whose answers the endpoint does not stream.
        size_errors: Texts that occur in the endpoint's error messages for a schema that is too large.
        extra: Additional members of a request with a JSON Schema (`extra_body` of the SDK openai).
        evidence: The sources of these statements.
        hosts: Hosts by which `guessed_dialect` recognises the endpoint.
        ports: Ports on this machine by which `guessed_dialect` recognises the server.
    """

    name: str
    title: str = ""
    updated: str = ""
    enforces: bool = False
    routes: tuple[str, ...] = ("prompt",)
    subset: SchemaSubset = field(default_factory=SchemaSubset)
    limits: Mapping[str, int] = field(default_factory=dict)
    continues: bool = False
    logprobs: str = ""
    whole_routes: tuple[str, ...] = ()
    size_errors: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
    evidence: tuple[Evidence, ...] = ()
    hosts: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()

    def __hash__(self) -> int:
        return hash((self.name, self.updated, self.routes))

    def override(self, **changes: Any) -> Capabilities:
        """Return a copy with other values, for example `limits=` or `routes=`."""
        return replace(self, **changes)

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Capabilities:
        """Return the capabilities that the JSON object of a data file describes."""

        def fixed(members: Mapping[str, Any], kind: Any) -> dict[str, Any]:
            return {name: kind(value) if isinstance(value, list) else value for name, value in members.items()}

        subset = fixed(data["subset"], frozenset)
        evidence = tuple(Evidence(**one) for one in data["evidence"])
        others = fixed({name: value for name, value in data.items() if name not in ("subset", "evidence")}, tuple)
        return cls(subset=SchemaSubset(**subset), evidence=evidence, **others)


@cached(1)
def dialects() -> dict[str, Capabilities]:
    """Return the capabilities of all dialects by name, from the data files."""
    found = {}
    for file in sorted((files("guideway.remote") / "data").iterdir(), key=lambda one: one.name):
        if file.name.endswith(".json"):
            one = Capabilities.of(json.loads(file.read_text("utf-8")))
            found[one.name] = one
    return found


def capabilities(dialect: str | Capabilities) -> Capabilities:
    """Return the capabilities of the dialect with this name; `Capabilities` are returned as they are.

    Raises:
        InvalidConstraintError: The name is unknown. The message lists the names.
    """
    if isinstance(dialect, Capabilities):
        return dialect
    known = dialects()
    if dialect not in known:
        raise InvalidConstraintError(f"unknown dialect {short_repr(dialect)}; known are {', '.join(known)}")
    return known[dialect]


def guessed_dialect(base_url: str, default: str) -> str:
    """Return the name of the dialect for a URL, by its host or, on this machine, by its port.

    Returns `default` for an empty URL, and "unknown" for a URL that no dialect lists or that is malformed.
    """
    if not base_url:
        return default
    try:
        parts = urlsplit(base_url)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        return "unknown"
    for name, one in dialects().items():
        if any(host == known or host.endswith("." + known) for known in one.hosts):
            return name
        if host in ("localhost", "127.0.0.1", "::1") and port in one.ports:
            return name
    return "unknown"
