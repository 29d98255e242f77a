"""The common code of integrations: matchers that are advanced by the generation loop of another library.

Logits processors receive the tokens of rows and their logits in an order that the library chooses: beam search reorders
rows, rejected draft tokens are removed from them, finished rows are padded or removed. So the state of a row is derived
from its tokens. The rows of the last call only save the work of advancing each matcher from the start.

rows.py             `Rows`: the masks of rows, found by the tokens of each row
processor.py        `Processor`: the constraints and prompts of one call; masks computed while the model runs
timings.py          `ProcessorTimings`: the times of the parts of a step
follower.py         `Follower`: one sequence of a server that reports its tokens; errors are stored, not raised
step_budget.py      `StepBudget`: limits the work of the masks of one step
requests.py         converts the constraint fields of requests to constraints
structural_tags.py  converts structural tags of vLLM and SGLang to constraints
"""

from __future__ import annotations

from guideway.integrations._common.follower import Follower, fill
from guideway.integrations._common.processor import Chained, Function, Processor, no_token_left
from guideway.integrations._common.requests import KINDS, requested, token_budget
from guideway.integrations._common.rows import Begun, Ids, Masks, Rows
from guideway.integrations._common.step_budget import StepBudget
from guideway.integrations._common.timings import ProcessorTimings

__all__ = [
    "KINDS",
    "Begun",
    "Chained",
    "Follower",
    "Function",
    "Ids",
    "Masks",
    "Processor",
    "ProcessorTimings",
    "Rows",
    "StepBudget",
    "fill",
    "no_token_left",
    "requested",
    "token_budget",
]
