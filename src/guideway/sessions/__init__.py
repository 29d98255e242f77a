"""Models and sessions: tokens, KV cache, matcher, sampler and random numbers move together.

model.py         `Model`: an engine and its tokenizer
session.py       `Session`: one sequence, forwards and back
stepping.py      many sessions as one step
strides.py       several tokens of rows that nobody watches as one call to the engine
history.py       logits and states that a session keeps of the way it came
kv.py            `KV`: keys and values in the user's hands
prefix_cache.py  `PrefixCache`: what sessions of a model ran, for others that begin alike
snapshot.py      sessions on disk
decoding.py      the loop that generates: many sessions, one step on one screen
watching.py      the text of a row as it grows: stop strings, banned strings, what may be shown
"""

from __future__ import annotations

from guideway.sessions.decoding import FinishReason, Limits, Row, Timings, decode, rounds, step
from guideway.sessions.kv import KV
from guideway.sessions.model import Model
from guideway.sessions.prefix_cache import PrefixCache, PrefixStatistics
from guideway.sessions.session import LOGITS_BYTES, Change, Counts, Session
from guideway.sessions.stepping import feed_all, infer_all

__all__ = [
    "KV",
    "LOGITS_BYTES",
    "Change",
    "Counts",
    "FinishReason",
    "Limits",
    "Model",
    "PrefixCache",
    "PrefixStatistics",
    "Row",
    "Session",
    "Timings",
    "decode",
    "feed_all",
    "infer_all",
    "rounds",
    "step",
]
