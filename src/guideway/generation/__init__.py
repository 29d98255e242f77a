"""The front door: load a model, and let it write text or typed values.

loading.py       `load`: a model by its name
front.py         `generate`, `extract`, `stream`, and what each means
asynchronous.py  the same, awaited; loop.py: the thread in which these share their rounds
resuming.py      `resume`: go on from a state
scoring.py       `score`: exact probabilities of options
beams.py         `beam_search`: the most probable texts that fit
particles.py     `smc`: texts as the model would write them, given that they fit
options.py       what they take by name
plan.py          what a call asks for, checked and compiled; its rows
streams.py       rows as they move: results, pieces of text, values that grow
view.py          `View`: a generation to look at
results.py       `Generation`: one result, and how it came about; `Cut`: where it was cut; `State`: what it goes on from
"""

from __future__ import annotations

from guideway.generation.asynchronous import agenerate, agenerate_details, astream, astream_values
from guideway.generation.beams import beam_search
from guideway.generation.front import (
    extract,
    extract_details,
    extraction,
    generate,
    generate_details,
    stream,
    stream_values,
)
from guideway.generation.loading import load
from guideway.generation.options import MAX_TOKENS, Options
from guideway.generation.particles import Posterior, smc
from guideway.generation.plan import Request
from guideway.generation.results import Cut, Generation, State
from guideway.generation.resuming import resume
from guideway.generation.scoring import Score, score
from guideway.generation.streams import Partial, Piece, Stream
from guideway.generation.view import View

__all__ = [
    "MAX_TOKENS",
    "Cut",
    "Generation",
    "Options",
    "Partial",
    "Piece",
    "Posterior",
    "Request",
    "Score",
    "State",
    "Stream",
    "View",
    "agenerate",
    "agenerate_details",
    "astream",
    "astream_values",
    "beam_search",
    "extract",
    "extract_details",
    "extraction",
    "generate",
    "generate_details",
    "load",
    "resume",
    "score",
    "smc",
    "stream",
    "stream_values",
]
