"""`GuidewayLogitProcessor`: constrains single requests to an SGLang server that uses another grammar backend."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sglang.srt.sampling.custom_logit_processor import CustomLogitProcessor

from guideway.compiler import compile
from guideway.constraints import Regex
from guideway.errors import GuidewayError, ProcessorError
from guideway.integrations._common import Follower, fill, no_token_left, requested, token_budget
from guideway.masks.torch import TorchMasks
from guideway.tokenizers import Tokenizer

__all__ = ["GuidewayLogitProcessor"]


class GuidewayLogitProcessor(CustomLogitProcessor):  # type: ignore[misc]  # SGLang's types are not read here
    """A custom logit processor of SGLang. The server needs `--enable-custom-logit-processor`.

    A request sends `GuidewayLogitProcessor.to_str()` as `custom_logit_processor`, and its constraint as
    `custom_params`: `{"guideway": {"regex": "..."}}` (kinds: see `requested`). If the inner object also has
    `"max_tokens"` (the value of `max_new_tokens`), every output is complete within it; without it, SGLang truncates an
    output at `max_new_tokens`.

    An error in the constraint or during generation ends the text of its request and is logged. Draft tokens are not
    supported: they end the text as well. The grammar backend supports draft tokens and reports errors.
    """

    def __call__(self, logits: torch.Tensor, custom_param_list: list[dict[str, Any]] | None = None) -> torch.Tensor:
        """Mask logits [rows, vocabulary] in place. `custom_param_list` has the params of the request of each row."""
        asked = [
            (row, params["__req__"], params["guideway"])
            for row, params in enumerate(custom_param_list or ())
            if params and params.get("guideway")
        ]
        if not asked:
            return logits
        followers = [_follower(request, given) for _, request, given in asked]
        for number, one in enumerate(followers):
            if any(one is other for other in followers[:number]) and one.error is None:
                one.fail(ProcessorError("a draft's tokens are not known here"))
        rows = np.empty((len(followers), -(-logits.shape[1] // 32)), np.uint32)
        fill(followers, rows)
        places = [row for row, *_ in asked]
        made, nothing = TorchMasks(in_place=True)(logits[places], rows, [True] * len(places))
        for row in nothing:
            followers[row].fail(no_token_left())
            made[row, list(followers[row].end_ids)] = 0.0
        logits[places] = made
        return logits


def _follower(request: Any, given: dict[str, Any]) -> Follower:
    """Return the `Follower` of a request, advanced by the new tokens of the request. The request object stores it."""
    found: Follower | None = getattr(request, "guideway_follower", None)
    if found is None:
        table = Tokenizer.of(request.tokenizer)
        try:
            kinds = {kind: spec for kind, spec in given.items() if kind != "max_tokens"}
            if len(kinds) != 1:
                raise ProcessorError(
                    "a request must have exactly one constraint, as {kind: text}, and optionally max_tokens"
                )
            automaton = compile(requested(*next(iter(kinds.items()))), table)
            found = Follower(automaton, table.eos_ids, max_tokens=token_budget("max_tokens", given.get("max_tokens")))
        except GuidewayError as error:
            found = Follower(compile(Regex(""), table), table.eos_ids)
            found.fail(error)
        found.name = f"request {request.rid}"
        request.guideway_follower = found
    if found.error is None:
        found.advance(list(request.output_ids)[found.position :])
    return found
