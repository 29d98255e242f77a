"""Random bodies for the endpoints that generate: valid and invalid values of known fields, and unknown fields."""

import random
from typing import Any

__all__ = ["NEEDED", "fault_of", "random_body"]

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
PARTS = [{"type": "text", "text": "a"}]
FORM = {"name": "a", "schema": SCHEMA}
TOOL = {"name": "f", "parameters": SCHEMA}
FIELDS: dict[str, list[Any]] = {
    "messages": [
        [{"role": "user", "content": "hi"}],
        [{"role": "tool"}],
        [],
        [3],
        [{"role": "user", "content": [{"type": "text", "text": "a"}]}],
    ],
    "prompt": ["hi", ["a", "b"], [5, 6], [[5], [6]], [], "", [10**9], "\ud800"],
    "input": ["hi", [{"role": "user", "content": "a"}], [], [{"type": "function_call"}], {}],
    "model": ["tiny", "other", 3],
    "max_tokens": [1, 5, 0, -1, 10**9],
    "max_output_tokens": [1, 5, 0],
    "temperature": [0, 1.5, -1, 1e308],
    "top_p": [0.5, 0, 2],
    "top_k": [3, -1],
    "n": [1, 2, 0, 1000],
    "seed": [1, -5, 2**70],
    "stop": ["a", ["a", "b"], [""], []],
    "stream": [False, True, "yes"],
    "logprobs": [True, False, 2, 50],
    "top_logprobs": [1, 30],
    "echo": [True, False],
    "logit_bias": [{"5": 1}, {"a": 1}, {"99999999": 1}, {"5": float(10**9)}],
    "presence_penalty": [0.5, 3],
    "response_format": [
        {"type": "json_object"},
        {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}},
        {"type": "x"},
        {"type": "json_schema", "json_schema": {"schema": {"$ref": "#/a"}}},
    ],
    "text": [
        {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA}},
        {"format": {"type": "text"}},
        {"a": 1},
    ],
    "tools": [
        [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}],
        [{"type": "function", "name": "f", "parameters": SCHEMA}],
        [{}],
        [],
        [{"type": "function", "function": {"name": "3 f"}}],
    ],
    "tool_choice": [
        "auto",
        "none",
        "required",
        {"type": "function", "function": {"name": "f"}},
        {"type": "function", "name": "f"},
        3,
    ],
    "parallel_tool_calls": [True, False],
    "regex": ["[0-9]+", "(", ""],
    "grammar": ['root ::= "a"', "root ::= root", ""],
    "structured_outputs": [{"choice": ["a"]}, {"regex": "a", "json": "{}"}, {"json": "{"}, {}],
    "stop_token_ids": [[3], [10**8]],
    "bad_words": [["a"], "b", [""]],
    "min_tokens": [0, 3, 10**6],
    "token_healing": [True],
    "reasoning_effort": ["none", "high", 1],
    "metadata": [{"a": "b"}],
    "previous_response_id": ["resp_1"],
    "instructions": ["be short", 3],
    "include": [["message.output_text.logprobs"], ["x"]],
    "unknown": [1],
    "guideway": [True],
}
NEEDED = {"/v1/chat/completions": "messages", "/v1/completions": "prompt", "/v1/responses": "input"}


def random_body(draw: random.Random, url: str) -> dict[str, Any]:
    """Return a body with up to three random fields."""
    names = draw.sample(sorted(FIELDS), draw.choice([0, 1, 2, 3]))
    body: dict[str, Any] = {"max_output_tokens" if url == "/v1/responses" else "max_tokens": 4}
    if draw.random() < 0.95:
        body[NEEDED[url]] = FIELDS[NEEDED[url]][0]
    return body | {name: draw.choice(FIELDS[name]) for name in names}


def fault_of(status: int, answer: Any) -> str | None:
    """Return what is wrong with an answer; None: it is one, or an error of the client that names the field."""
    if status == 200:
        return None
    error = answer["error"]
    if status != 400 and error["code"] != "model_not_found":
        return f"status {status}"
    if not error["param"] or not error["message"]:
        return "the error names no field"
    return None
