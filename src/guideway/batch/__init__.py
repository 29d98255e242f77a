"""Batches: many requests from a file or an iterator, on one machine or in workers of a data framework.

`guideway.batch(model, requests)` yields results; the module itself can be called.

running.py      `batch`: yields each result when it is complete
files.py        `run`: from a file to a file, continued after an interruption
earlier.py      results of earlier runs
survey.py       `survey`: what a run would do
requests.py     `BatchRequest`, and lines in the format of this library
fields.py       checks of the fields of requests
bodies.py       bodies of requests in OpenAI's format
message_fields.py messages of bodies, for chat templates
tool_fields.py  tools of bodies
replies.py      the prompt of a chat request, and the constraint of its reply
answers.py      results as lines of the output file
answer_parts.py identifiers, tool calls, log-probabilities and usage of answers
response_objects.py objects of the Responses API
jobs.py         the job of a request: prompts, constraint, options
ordering.py     the order of requests: by constraint and by the beginning of the prompt
reading.py      reads the lines of a file
result_file.py  the file of results
ids.py          sets of identifiers; seeds
progress.py     the progress bar
worker.py       `Worker`: rows of Ray Data, Spark, Dask and Daft
columns.py      the Arrow types of values, and values as arrays
frameworks.py   the Spark schema and the Daft function of a `Worker`
ray.py          `processor`: vLLM under Ray, with a constraint per row
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from guideway.batch.files import BatchSummary, run
from guideway.batch.requests import BatchRequest
from guideway.batch.running import BatchResult, batch
from guideway.batch.survey import BatchSurvey, survey
from guideway.batch.worker import Worker

__all__ = ["BatchRequest", "BatchResult", "BatchSummary", "BatchSurvey", "Worker", "batch", "run", "survey"]


class _BatchModule(ModuleType):
    """The class of this module.

    It makes the module callable: `guideway.batch(...)` calls `guideway.batch.batch(...)`.
    """

    def __call__(self, *arguments: Any, **options: Any) -> Iterator[BatchResult]:
        return batch(*arguments, **options)


sys.modules[__name__].__class__ = _BatchModule
