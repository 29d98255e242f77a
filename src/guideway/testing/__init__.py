"""For tests of engines, and of what is built on them: the contract as a call, and models without weights.

engines.py    `step_engine_contract`: what every step engine must hold to; for engines of other packages too
processors.py  `processor_contract`: the same for logits processors
checking.py   `check`: a tokenizer, a constraint and an engine of yours, held to each other
constant.py   a model that says the same after every text
toy.py        an engine whose every bit is known, with and without going back
tiny_models.py  random models of every architecture, as folders of the Hub
faults.py     an engine that fails where a test wants it to
"""

from __future__ import annotations

from guideway.testing.checking import CheckReport, Finding, check
from guideway.testing.constant import ConstantEngine, ConstantModel
from guideway.testing.engines import step_engine_contract
from guideway.testing.faults import FailingEngine
from guideway.testing.processors import processor_contract
from guideway.testing.tiny_models import ARCHITECTURES, tiny_model
from guideway.testing.toy import ToyEngine

__all__ = [
    "ARCHITECTURES",
    "CheckReport",
    "ConstantEngine",
    "ConstantModel",
    "FailingEngine",
    "Finding",
    "ToyEngine",
    "check",
    "processor_contract",
    "step_engine_contract",
    "tiny_model",
]
