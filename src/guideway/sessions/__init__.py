"""Models and sessions: tokens, KV cache, matcher, sampler and random numbers move together.

model.py      `Model`: an engine and its tokenizer
session.py    `Session`: one sequence, forwards and back
decoding.py   the loop that generates: many sessions, one step on one screen
"""

from __future__ import annotations

from guideway.sessions.decoding import FinishReason, Row, Timings, decode
from guideway.sessions.model import Model
from guideway.sessions.session import Session, feed_all

__all__ = ["FinishReason", "Model", "Row", "Session", "Timings", "decode", "feed_all"]
