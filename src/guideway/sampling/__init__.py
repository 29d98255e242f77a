"""Samplers: from logits to a token id.

The package does not know constraints: a token that is not allowed has the logit -inf, or its bit in a mask is 0.

sampler.py      `Sampler`: the stages, their parameters and order, and checks
chain.py        `draw`: applies the stages and draws
native.py       the same draw in the kernel, for the samplers that it implements (`Sampler.kernel`)
device_rows.py  draws of a batch on the device of its logits; copies of logits to main memory
stages.py       truncation: top-k, top-p, min-p, typical, tail-free, top-a, top-n-sigma, XTC; temperature
repeats.py      penalties, DRY, logit bias
mirostat.py     Mirostat 1 and 2
checks.py       checks of parameters
random.py       hash-based random numbers
report.py       `report`: probabilities under the model and under the mask
"""

from __future__ import annotations

from guideway.sampling.chain import Drawn, draw, draw_at
from guideway.sampling.device_rows import DeviceDraw, DeviceRow, device_rows, draws_on_device, on_cpu
from guideway.sampling.mirostat import Mirostat
from guideway.sampling.native import draw_bare, draw_with_gap
from guideway.sampling.random import uniform
from guideway.sampling.repeats import Dry
from guideway.sampling.report import TokenAlternative, TokenLogprobs, log_softmax, report
from guideway.sampling.sampler import ORDER, Sampler, Stage
from guideway.sampling.stages import probabilities

__all__ = [
    "ORDER",
    "DeviceDraw",
    "DeviceRow",
    "Drawn",
    "Dry",
    "Mirostat",
    "Sampler",
    "Stage",
    "TokenAlternative",
    "TokenLogprobs",
    "device_rows",
    "draw",
    "draw_at",
    "draw_bare",
    "draw_with_gap",
    "draws_on_device",
    "log_softmax",
    "on_cpu",
    "probabilities",
    "report",
    "uniform",
]
