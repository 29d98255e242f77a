"""The one logits processor behind those of all engines: rows of tokens in, masks out.

An engine's own loop calls a processor with the tokens of its rows and their logits, in an order of its own: rows are
reordered by beams, go back when drafts are refused, go on after their end, leave and are repeated. So nothing is taken
on trust: a row stands where its tokens say. What was seen in the last call only saves walking there from the start.

rows.py      `Rows`: the masks of any rows, by their tokens
core.py      `Processor`: constraints and prompts of one call of an engine; masks begun while the model runs
timings.py   where the time went
"""

from __future__ import annotations

from guideway.processors.core import Chained, Function, Processor
from guideway.processors.rows import Begun, Ids, Masks, Rows
from guideway.processors.timings import ProcessorTimings

__all__ = ["Begun", "Chained", "Function", "Ids", "Masks", "Processor", "ProcessorTimings", "Rows"]
