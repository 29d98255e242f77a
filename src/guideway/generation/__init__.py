"""The front door: load a model, and let it write text or typed values.

loading.py       `load`: a model by its name
front.py         `generate`, `extract`, `stream`, and what each means
plan.py          what a call asks for, checked and compiled; its rows, generated
results.py       `Generation`: one result, and how it came about
"""

from __future__ import annotations

from guideway.generation.front import extract, extract_details, extraction, generate, generate_details, stream
from guideway.generation.loading import load
from guideway.generation.plan import MAX_TOKENS, Options
from guideway.generation.results import Generation

__all__ = [
    "MAX_TOKENS",
    "Generation",
    "Options",
    "extract",
    "extract_details",
    "extraction",
    "generate",
    "generate_details",
    "load",
    "stream",
]
