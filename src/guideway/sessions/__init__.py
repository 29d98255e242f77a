"""Models and sessions: tokens, KV cache, matcher, sampler and random numbers of one sequence.

model.py             `ModelBase`: an engine and its tokenizer
session.py           `Session`: one sequence of tokens, which can be extended and rewound
batch_step.py        one step of several sessions: one model call, one token in each
batch_invariance.py  draws that do not depend on the other sessions of a step
divergence.py        `Divergence`: where a token budget changed a text
history.py           logits and recurrent states that a session stores for rewinding
kv_cache.py          `KVCache`: a KV cache as a value, from which sessions can start
prefix_cache.py      `PrefixCache`: caches of common prompt prefixes
snapshot.py          sessions on disk
"""

from __future__ import annotations

from guideway.sessions.batch_step import feed_all, infer_all
from guideway.sessions.divergence import Divergence
from guideway.sessions.kv_cache import KVCache
from guideway.sessions.model import ModelBase
from guideway.sessions.prefix_cache import PrefixCache, PrefixStatistics
from guideway.sessions.session import LOGITS_BYTES, Change, Counts, Session

__all__ = [
    "LOGITS_BYTES",
    "Change",
    "Counts",
    "Divergence",
    "KVCache",
    "ModelBase",
    "PrefixCache",
    "PrefixStatistics",
    "Session",
    "feed_all",
    "infer_all",
]
