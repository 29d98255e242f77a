"""From logits to a token. Knows no grammar: what is not allowed has the logit -inf, or no bit in a mask.

sampler.py    `Sampler`: which stages, with which values, in which order; what is refused together
chain.py      `draw`: logits through the stages, and the draw
native.py     the same draw in the kernel, where it can
torch.py      the same draw on tensors of PyTorch, on their device
stages.py     stages that cut: top-k, top-p, min-p, typical, tail-free, top-a, top-n-sigma, XTC; temperature
repeats.py    stages that look back: penalties, DRY; biases
mirostat.py   cutting by feedback
random.py     random numbers without state
report.py     `report`: probabilities under the model and under the mask
"""

from __future__ import annotations

from guideway.sampling.chain import Drawn, draw, draw_at
from guideway.sampling.mirostat import Mirostat
from guideway.sampling.native import draw_bare
from guideway.sampling.random import uniform
from guideway.sampling.repeats import Dry
from guideway.sampling.report import Alternative, TokenLogprobs, log_softmax, report
from guideway.sampling.sampler import ORDER, Sampler, Stage
from guideway.sampling.stages import probabilities

__all__ = [
    "ORDER",
    "Alternative",
    "Drawn",
    "Dry",
    "Mirostat",
    "Sampler",
    "Stage",
    "TokenLogprobs",
    "draw",
    "draw_at",
    "draw_bare",
    "log_softmax",
    "probabilities",
    "report",
    "uniform",
]
