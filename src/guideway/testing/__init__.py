"""For tests of engines and of code that uses them: functions that check an interface, and small models.

engines.py        `step_engine_contract`: checks an engine, also one of another package
processors.py     `processor_contract`: checks a logits processor
remote_models.py  `remote_contract`: checks a model served by an API
checking.py       `check`: checks the masks of a constraint with a tokenizer, and optionally an engine
respelling.py     finds a JSON text with a given value that a constraint accepts
constant.py       a model that gives the same logits after every text
scripted.py       a model that writes given texts
toy.py            an exactly reproducible engine, with or without rollback
tiny_models.py    random models of several architectures, in the file format of the Hugging Face Hub
faults.py         an engine that fails on request
provider.py       an HTTP server with the wire formats of API providers, which fails on request
"""

from __future__ import annotations

from guideway.testing.checking import CheckReport, Finding, check
from guideway.testing.constant import ConstantEngine, ConstantModel
from guideway.testing.engines import step_engine_contract
from guideway.testing.faults import FailingEngine
from guideway.testing.processors import processor_contract
from guideway.testing.provider import Answer, Provider, ProviderRequest
from guideway.testing.remote_models import remote_contract
from guideway.testing.scripted import ScriptedEngine, ScriptedModel
from guideway.testing.tiny_models import ARCHITECTURES, tiny_model
from guideway.testing.toy import ToyEngine

__all__ = [
    "ARCHITECTURES",
    "Answer",
    "CheckReport",
    "ConstantEngine",
    "ConstantModel",
    "FailingEngine",
    "Finding",
    "Provider",
    "ProviderRequest",
    "ScriptedEngine",
    "ScriptedModel",
    "ToyEngine",
    "check",
    "processor_contract",
    "remote_contract",
    "step_engine_contract",
    "tiny_model",
]
