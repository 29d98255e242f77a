"""`Model`: an engine and its tokenizer, with the generating functions as methods."""

from __future__ import annotations

from guideway.generation import api, async_api, chat, resumption, scoring
from guideway.sessions import ModelBase

__all__ = ["Model"]


class Model(ModelBase):
    """A model that generates: an engine that runs it, and the tokenizer it was trained with.

    `guideway.load` returns one. The methods `generate`, `complete`, `extract`, `stream` and so on are the functions of
    the same names in `guideway.generation`, with this model as their first argument; `chat` returns a `Chat`. Leaving a
    `with` block closes the engine.

    Args:
        engine: Runs the model; see `guideway.engines.base.StepEngine`.
        tokenizer: The tokenizer of the model.
        name: The name of the model in error messages and tables.
        prefix_bytes: The size of the cache of common prompt prefixes in bytes; 0: none.
    """

    generate = api.generate
    complete = api.complete
    extract = api.extract
    complete_extract = api.complete_extract
    stream = api.stream
    stream_extract = api.stream_extract
    stream_values = api.stream_values
    agenerate = async_api.agenerate
    acomplete = async_api.acomplete
    aextract = async_api.aextract
    astream = async_api.astream
    astream_values = async_api.astream_values
    resume = resumption.resume
    score = scoring.score
    chat = chat.chat
