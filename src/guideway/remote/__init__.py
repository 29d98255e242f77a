"""Models served by an API.

A plan says before the call how a constraint is sent; the answer is checked while it streams.

`guideway.remote(client, name)` returns a model; the module itself can be called. `guideway.plan` returns how a
constraint is sent and what the endpoint enforces. No SDK is imported here: the caller makes the client.

model.py            `remote`, `plan`, `RemoteModel`, `RemoteGeneration`
plan.py             `RemotePlan`: route, request fragment, guarantee; `AnswerReader`: how answers are checked and read
planning.py         `make_plan`: chooses the route of a plan
routes.py           `route_plan`: the plan of a constraint by one route
sizes.py            the sizes of schemas, compared with the limits of endpoints
fragments.py        the members of a request that carry a constraint, by route
capabilities.py     what endpoints enforce, from the dated files in data/
subset.py           `SchemaSubset`: the part of JSON Schema that a provider takes
lowering.py         rewrites a JSON Schema for the subset of a provider, and returns the codec of the answers
codecs.py           `Codec`: encodes values in the form that is sent, and decodes answers
distinction.py      which option of a union a value belongs to, and whether two options can share a value
dialogue.py         the requests for one result, and what happens after an answer that does not fit
received.py         the answer to one request while it arrives
answer_text.py      the text of an answer without the repeated prefill, and the part of it that a stream yields
streams.py          streams of an SDK in threads and event loops
scoring.py          `score`, where the endpoint gives log-probabilities
structural_tags.py  `Tags` as a structural tag of vLLM and SGLang
first_tokens.py     the most probable option, by log-probabilities of first tokens
check.py            `StreamCheck`: checks the bytes of an answer as they arrive
repair.py           repairs of the syntax and the values of an answer
usage.py            `Usage`, `Prices`, `RateLimit`
probing.py          `probe`: measures what an endpoint enforces
adapters/           one file for each SDK
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from guideway.remote.capabilities import Capabilities, Evidence, capabilities, dialects
from guideway.remote.dialogue import Attempt
from guideway.remote.model import RemoteGeneration, RemoteModel, plan, remote
from guideway.remote.plan import RemotePlan
from guideway.remote.probing import Probe, Verdict, probe
from guideway.remote.subset import Note
from guideway.remote.usage import Prices, RateLimit, Usage

__all__ = [
    "Attempt",
    "Capabilities",
    "Evidence",
    "Note",
    "Prices",
    "Probe",
    "RateLimit",
    "RemoteGeneration",
    "RemoteModel",
    "RemotePlan",
    "Usage",
    "Verdict",
    "capabilities",
    "dialects",
    "plan",
    "probe",
    "remote",
]


class _Callable(ModuleType):
    """The class of this module. It makes the module callable: `guideway.remote(...)` calls `remote(...)`."""

    def __call__(self, *arguments: Any, **options: Any) -> RemoteModel:
        return remote(*arguments, **options)


sys.modules[__name__].__class__ = _Callable
