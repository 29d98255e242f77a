"""Generation: prompts and constraints -> text and typed values.

api.py                     `generate`, `complete`, `extract`, `stream`, and their overloads
model.py                   `Model`: the same functions as methods
async_api.py               async variants of these functions; async_loop.py: the thread that generates for them
options.py                 the keyword arguments of these functions
protocol.py                `GeneratingModel`: models whose texts another program generates, such as a server with an API
chat_prompts.py            prompts from messages: the chat template, and the tools of the constraint
chat.py                    `Chat`: a conversation; chat_steps.py: the replies and function calls of one turn
plan.py                    `Plan`: the checked options and the constraint of a prompt; `Job`: the prompts of a call
scheduler.py               the generation loop: rows, rounds, limits
deferral.py                worker threads for rows whose constraint needs too much work in a round
unbudgeted.py              the tokens that a row with banned strings would have without its token budget
speculation.py             speculative decoding: proposed tokens that the model checks in one pass
multi_step.py              several tokens per engine call for rows that need no inspection
stop_checker.py            stop strings, banned strings, which text may be shown
streams.py                 results, text chunks and growing values as rows advance
partial_values.py          the complete parts of a JSON text that is still being written
extraction.py              the options of `extract`, and the prompts of its texts
prompts.py                 `ExtractionPrompt`: the prompt of `extract`
resumption.py              `resume`: continue from a state
scoring.py                 `score`: exact probabilities of options
prompt_logprobs.py         log-probabilities of the tokens of prompts
beam.py                    `beam_search`: the most probable texts
sequential_monte_carlo.py  `smc`: samples from the model's distribution, conditioned on the constraint
quotation_search.py        verbatim strings that are chosen as a whole
fields.py                  tokens and probabilities of the fields of a record
retries.py                 values that a validator rejects are excluded and generated again
spans.py                   where the values of a record occur in its source
results.py                 `Generation`, `Truncation`, `GenerationState`
view.py                    `View`: the tokens of a generation, for inspection
"""

from __future__ import annotations

from guideway.generation.api import (
    complete,
    complete_extract,
    extract,
    generate,
    stream,
    stream_extract,
    stream_values,
)
from guideway.generation.async_api import acomplete, aextract, agenerate, astream, astream_values
from guideway.generation.beam import beam_search
from guideway.generation.chat import Chat, ChatStream
from guideway.generation.extraction import EXTRACTION_OPTIONS, ExtractionOptions, extraction
from guideway.generation.model import Model
from guideway.generation.options import MAX_TOKENS, OPTIONS, Options
from guideway.generation.plan import GenerationRequest
from guideway.generation.prompts import ExtractionPrompt
from guideway.generation.results import Generation, GenerationState, Truncation
from guideway.generation.resumption import resume
from guideway.generation.scoring import Score, score
from guideway.generation.sequential_monte_carlo import Posterior, smc
from guideway.generation.streams import PartialValue, Stream, TextChunk
from guideway.generation.view import View

__all__ = [
    "EXTRACTION_OPTIONS",
    "MAX_TOKENS",
    "OPTIONS",
    "Chat",
    "ChatStream",
    "ExtractionOptions",
    "ExtractionPrompt",
    "Generation",
    "GenerationRequest",
    "GenerationState",
    "Model",
    "Options",
    "PartialValue",
    "Posterior",
    "Score",
    "Stream",
    "TextChunk",
    "Truncation",
    "View",
    "acomplete",
    "aextract",
    "agenerate",
    "astream",
    "astream_values",
    "beam_search",
    "complete",
    "complete_extract",
    "extract",
    "extraction",
    "generate",
    "resume",
    "score",
    "smc",
    "stream",
    "stream_extract",
    "stream_values",
]
