"""Optional parts of answers: the prompt of a completion with its log-probabilities, and the member "guideway".

The member "guideway" is a report about the generation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from guideway.batch.answer_parts import logprob_lists
from guideway.batch.requests import BatchRequest
from guideway.generation import Generation, Model
from guideway.generation.plan import Job
from guideway.generation.prompt_logprobs import prompt_logprobs
from guideway.sampling import TokenLogprobs

__all__ = ["PromptEcho", "echo_of", "report_of"]


@dataclass(frozen=True)
class PromptEcho:
    """The prompts of a request with `echo`: each text of the answer begins with its prompt.

    Attributes:
        texts: The text of each prompt.
        steps: For each prompt the log-probabilities of its tokens; None: they were not requested.
    """

    texts: tuple[str, ...]
    steps: list[list[TokenLogprobs]] | None

    def prompt(self, request: BatchRequest, choice: int) -> tuple[str, list[TokenLogprobs]]:
        """Return the text of the prompt of a choice, and the log-probabilities of its tokens.

        The log-probabilities are [] if they were not requested.
        """
        number = choice // (request.n or 1)
        return self.texts[number], [] if self.steps is None else self.steps[number]

    def logprobs(self, model: Model, request: BatchRequest, choice: int) -> dict[str, Any] | None:
        """Return the `logprobs` object for the prompt of a choice; None if log-probabilities were not requested.

        The values of the first token in `token_logprobs` and `top_logprobs` are null, because no token precedes it.
        """
        if self.steps is None:
            return None
        lists = logprob_lists(model, self.prompt(request, choice)[1])
        for name in ("token_logprobs", "top_logprobs"):
            lists[name][:1] = [None] * len(lists[name][:1])
        return lists

    def add_to(self, model: Model, request: BatchRequest, answer: dict[str, Any]) -> None:
        """Add the prompts to the choices of an answer, in place.

        With `max_tokens` 0, the choices have only the prompts; the token that was generated is not counted in `usage`.
        """
        only = request.options.get("max_tokens") == 0
        for choice in answer["choices"]:
            text, _ = self.prompt(request, choice["index"])
            lists = self.logprobs(model, request, choice["index"])
            if lists is not None and not only:
                for name, values in choice["logprobs"].items():
                    more = [value + len(text) for value in values] if name == "text_offset" else values
                    lists[name] = [*lists[name], *more]
            choice["text"] = text if only else text + choice["text"]
            choice["logprobs"] = lists
            if only:
                choice["finish_reason"] = "length"
        if only:
            usage = answer["usage"]
            usage["completion_tokens"], usage["total_tokens"] = 0, usage["prompt_tokens"]


def echo_of(model: Model, job: Job, count: int | None) -> PromptEcho:
    """Return the prompts of a job, without the BOS tokens.

    Args:
        model: The model.
        job: The job, before its first token is generated.
        count: The number of most probable tokens at each position whose log-probabilities are computed, too; None: no
            log-probabilities are computed.
    """
    bos = len(model.bos_ids)
    prompts = [session.tokens for session in job.sessions]
    prompts = [ids[bos:] if ids[:bos] == list(model.bos_ids) else ids for ids in prompts]
    texts = tuple(model.tokenizer.decode(ids) for ids in prompts)
    if count is None:
        return PromptEcho(texts, None)
    found = prompt_logprobs(model, prompts, count)
    return PromptEcho(
        texts,
        [
            [step or TokenLogprobs(ids[0], 0.0, 0.0, 0.0, False) for step in steps]
            for ids, steps in zip(prompts, found, strict=True)
        ],
    )


def report_of(request: BatchRequest, found: Sequence[Sequence[Generation[Any]]]) -> dict[str, Any]:
    """Return the member "guideway" of an answer, for a request with `"guideway": true`.

    It has the member "guarantee" ("exact" if the output has a constraint, otherwise "none") and, for each text, numbers
    of tokens, times and the truncation.
    """
    constrained = request.output is not None or "tools" in request.details
    choices = [
        {
            "forced": one.forced,
            "sampled": len(one.tokens) - one.forced,
            "seconds": {
                "prompt": one.timings.prompt,
                "model": one.timings.model,
                "mask": one.timings.mask,
                "sample": one.timings.sample,
            },
            "truncation": None if one.truncation is None else one.truncation._asdict(),
        }
        for group in found
        for one in group
    ]
    return {"guarantee": "exact" if constrained else "none", "choices": choices}
