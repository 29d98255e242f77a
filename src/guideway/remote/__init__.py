"""Models served by an API: planned before the call, checked while the answer streams.

`guideway.remote(client, name)` returns a model; the module itself can be called. `guideway.plan` tells what an endpoint
enforces. No SDK is imported here: the caller makes the client.

model.py            `remote`, `plan`, `RemoteModel`, `RemoteGeneration`
plan.py             `RemotePlan`: route, request fragment, guarantee; `AnswerReader`: how answers are checked and read
fragments.py        the members of a request that carry a constraint, by route
capabilities.py     what endpoints enforce, from the dated files in data/
subset.py           `SchemaSubset`: the part of JSON Schema that a provider takes
lowering.py         a JSON Schema in the subset of a provider, with its inverse
codecs.py           the inverse: values in the form that is sent, and back
distinction.py      tests of values and schemas, for unions
dialogue.py         the requests for one result, and what happens after an answer that does not fit
received.py         the answer to one request while it arrives
answer_text.py      the text of an answer without repetitions, and what of it a stream may show
streams.py          streams of an SDK in threads and event loops
scoring.py          `score`, where the endpoint gives log-probabilities
structural_tags.py  `Tags` as a structural tag of vLLM and SGLang
first_tokens.py     the most probable option, by log-probabilities of first tokens
check.py            the matcher over single bytes
repair.py           repairs of syntax
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
    """The module: `guideway.remote(...)` is `guideway.remote.remote(...)`."""

    def __call__(self, *arguments: Any, **options: Any) -> RemoteModel:
        return remote(*arguments, **options)


sys.modules[__name__].__class__ = _Callable
