"""`processor`: vLLM in Ray Data, with a constraint for each row. `check_nodes`: compares the versions on all nodes."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import platform
from collections.abc import Mapping
from typing import Any, Literal

import guideway
from guideway.arguments import short_repr
from guideway.batch.ids import seed_of
from guideway.batch.requests import shared_constraint
from guideway.batch.worker import constraint_of_row, fields_of, filled
from guideway.constraints import Constraint, of, to_wire
from guideway.errors import EngineError, GuidewayError, MissingDependencyError
from guideway.generation.options import MAX_TOKENS

__all__ = ["check_nodes", "processor", "versions"]

BACKEND = "guideway"


def processor(
    config: Any,
    output: object = None,
    *,
    prompt: str = "{text}",
    system_prompt: str | None = None,
    column: str = "output",
    on_error: Literal["column", "raise"] = "column",
    constraint_column: str | None = None,
    id_column: str | None = None,
    max_tokens: int = MAX_TOKENS,
    sampling_params: Mapping[str, Any] | None = None,
    check: bool = True,
    **options: Any,
) -> Any:
    """Return a processor of `ray.data.llm` whose vLLM engines use the backend `guideway`. A row can have a constraint.

    The constraint is sent as a document of `to_wire`. The result has the columns of the input, the column `column` with
    JSON data (texts if there is no JSON Schema or if `constraint_column` is given) and, if `on_error` is "column",
    `column + "_error"`. The backend of vLLM has no token budget: a text can end at `max_tokens` before it is complete,
    which is an error of its row.

    Args:
        config: A `ray.data.llm.vLLMEngineProcessorConfig`. It is not changed.
        output: The type or constraint of the values; None: free text, unless `constraint_column` is given.
        prompt: A template with names of columns in braces.
        system_prompt: The text of a system message before the prompt; None: no system message.
        column: The name of the new column.
        on_error: "column": an error of a row is text in a column. "raise": the first error is raised.
        constraint_column: A column with the constraint of each row, as for `guideway.batch.Worker`.
        id_column: A column with identifiers from which the seeds are derived. None: they are derived from the prompt.
        max_tokens: The maximum number of tokens of a text.
        sampling_params: Other sampling parameters of vLLM.
        check: Whether the versions of all nodes are compared now (`check_nodes`). Each process also checks its versions
            when it runs.
        **options: Other arguments of `ray.data.llm.build_processor`.

    Raises:
        MissingDependencyError: Ray is not installed.
        EngineError: A node has other versions.
        ValueError: `on_error` is unknown, the template is malformed, or the config selects another backend.
    """
    llm = _ray_llm()
    if on_error not in ("column", "raise"):
        raise ValueError(f'on_error must be "column" or "raise", got {short_repr(on_error)}')
    if check:
        check_nodes()
    rows = RowRequests(
        None if output is None else to_wire(of(output)),
        prompt,
        system_prompt,
        column,
        on_error,
        constraint_column,
        id_column,
        {"temperature": 0.0, **dict(sampling_params or {}), "max_tokens": max_tokens},
        versions(),
    )
    return llm.build_processor(with_backend(config, on_error), rows.before, rows.after, **options)


def with_backend(config: Any, on_error: str) -> Any:
    """Return a copy of a config whose engine uses the backend `guideway`.

    If `on_error` is "column", an error of a row does not end the run. Raises `ValueError` if the config selects another
    backend.
    """
    engine = dict(config.engine_kwargs)
    given = dict(engine.get("structured_outputs_config") or {})
    if given.get("backend", BACKEND) != BACKEND:
        raise ValueError(
            f"engine_kwargs selects the backend {short_repr(given['backend'])}; omit it, or use {BACKEND!r}"
        )
    engine["structured_outputs_config"] = {**given, "backend": BACKEND}
    return config.model_copy(
        update={"engine_kwargs": engine, "should_continue_on_error": on_error == "column"}, deep=True
    )


class RowRequests:
    """The functions that Ray runs before and after the engine (`before`, `after`).

    Ray pickles the object for its workers, so the constraint is stored as a JSON document.

    Args:
        document: The constraint for rows that have none, as a document of `to_wire`; None: free text.
        prompt: See `processor`.
        system_prompt: See `processor`.
        column: See `processor`.
        on_error: See `processor`.
        constraint_column: See `processor`.
        id_column: See `processor`.
        sampling: The sampling parameters of vLLM.
        expected: The versions of the driver process, see `versions`.
    """

    def __init__(
        self,
        document: Mapping[str, Any] | None,
        prompt: str,
        system_prompt: str | None,
        column: str,
        on_error: str,
        constraint_column: str | None,
        id_column: str | None,
        sampling: Mapping[str, Any],
        expected: Mapping[str, str],
    ) -> None:
        self.document, self.prompt, self.system_prompt = document, prompt, system_prompt
        self.column, self.on_error = column, on_error
        self.constraint_column, self.id_column = constraint_column, id_column
        self.sampling, self.expected = dict(sampling), dict(expected)
        self.fields = fields_of(prompt)

    def constraint(self, row: Mapping[str, Any]) -> Constraint[Any] | None:
        """Return the constraint of a row; None: free text."""
        default = None if self.document is None else shared_constraint("constraint", self.document)
        return constraint_of_row(row.get(self.constraint_column) if self.constraint_column else None, default)

    def before(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return the input of the engine for a row: the columns of the row, messages and sampling parameters.

        All values of a column have one type, as Arrow requires. A row without a valid request gets a request for one
        token, and its error is stored in the column `guideway_error`, which `after` reads. A column whose name the
        engine also uses, such as `prompt`, gets a prefix, which `after` removes.

        Raises:
            EngineError: This process has other versions than the driver.
            GuidewayError: `on_error` is "raise", and the row has no valid request.
            KeyError: The row has no column `id_column`.
        """
        compare(versions(), self.expected, "this process")
        error: str | None = None
        text, document = " ", None
        try:
            text = filled(self.prompt, self.fields, row)
            constraint = self.constraint(row)
            document = None if constraint is None else json.dumps(to_wire(constraint))
        except GuidewayError as problem:
            if self.on_error == "raise":
                raise
            error = f"{type(problem).__name__}: {problem}"
        messages = [] if self.system_prompt is None else [{"role": "system", "content": self.system_prompt}]
        messages.append({"role": "user", "content": text})
        key = text if self.id_column is None else str(row[self.id_column])
        params = {"seed": seed_of(key), **self.sampling}
        if error is not None:
            params["max_tokens"] = 1
        elif document is not None:
            params["structured_outputs"] = {"grammar": document}
        kept = {_PREFIX + name if name in _OF_ENGINE or name.startswith(_PREFIX) else name: row[name] for name in row}
        return {**kept, "messages": messages, "sampling_params": params, _ERROR: error}

    def after(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return the columns of the result: those of the input, the value and, if `on_error` is "column", the error."""
        kept = {name.removeprefix(_PREFIX): value for name, value in row.items() if name not in _OF_ENGINE}
        error = row.get(_ERROR) or row.get("__inference_error__") or None
        value: Any = None
        if error is None:
            try:
                value = self.value(kept, row["generated_text"])
            except GuidewayError as problem:
                if self.on_error == "raise":
                    raise
                error = f"{type(problem).__name__}: {problem}"
        made = {**kept, self.column: value}
        return {**made, f"{self.column}_error": error} if self.on_error == "column" else made

    def value(self, row: Mapping[str, Any], text: str) -> Any:
        """Return the value of a text: JSON data if all rows have one constraint with a JSON Schema, else the text.

        Raises:
            InvalidTextError: The text does not fit the constraint, for example because it ended at `max_tokens`.
        """
        constraint = self.constraint(row)
        if constraint is None:
            return text
        value = constraint.parse(text)
        return value if self.constraint_column is None and hasattr(constraint, "schema") else text


_ERROR = "guideway_error"
_PREFIX = "guideway_input_"
_OF_ENGINE = frozenset(
    (
        *(
            "messages",
            "prompt",
            "tokenized_prompt",
            "sampling_params",
            "params",
            "prompt_token_ids",
            "generated_tokens",
        ),
        *("generated_text", "num_input_tokens", "num_generated_tokens", "embeddings", "metrics", "logprobs"),
        *("prompt_logprobs", "batch_uuid", "time_taken_llm", "request_id", "__inference_error__", _ERROR),
    )
)
"""Columns that `ray.data.llm` or `before` adds to a row; `after` removes them."""


# -- versions


def versions() -> dict[str, str]:
    """Return the versions that must be equal on all nodes: Python (major.minor), guideway and vLLM."""
    found = {"python": ".".join(platform.python_version_tuple()[:2]), "guideway": guideway.__version__}
    try:
        found["vllm"] = importlib.metadata.version("vllm")
    except importlib.metadata.PackageNotFoundError:
        found["vllm"] = "not installed"
    return found


def compare(found: Mapping[str, str], expected: Mapping[str, str], place: str) -> None:
    """Raise `EngineError` if a version differs from the expected one.

    `place`: where `found` is from, for the message.
    """
    wrong = [
        f"{name} {found.get(name)}, expected {version}"
        for name, version in expected.items()
        if found.get(name) != version
    ]
    if wrong:
        raise EngineError(
            f"{place} has other versions than the driver: {'; '.join(wrong)}. Install the same on every node"
        )


def check_nodes(timeout: float = 120.0) -> dict[str, dict[str, str]]:
    """Run a task on every node of the Ray cluster, and compare its versions with those of this process.

    Args:
        timeout: The seconds within which all nodes must answer.

    Returns:
        The versions by node.

    Raises:
        MissingDependencyError: Ray is not installed.
        EngineError: A node has other versions, has no guideway, or does not answer.
    """
    ray = _module("ray")
    strategies = _module("ray.util.scheduling_strategies")
    ray.init(ignore_reinit_error=True)
    task = ray.remote(num_cpus=0)(versions)
    nodes = [node for node in ray.nodes() if node["Alive"]]
    waiting = {
        node["NodeID"]: task.options(
            scheduling_strategy=strategies.NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        ).remote()
        for node in nodes
    }
    names = {node["NodeID"]: str(node.get("NodeManagerAddress", node["NodeID"])) for node in nodes}
    found: dict[str, dict[str, str]] = {}
    ready, _ = ray.wait(list(waiting.values()), num_returns=len(waiting), timeout=timeout)
    for node, result in waiting.items():
        if result not in ready:
            raise EngineError(f"node {names[node]} did not report its versions within {timeout:g} s")
        try:
            found[node] = ray.get(result)
        except Exception as error:  # the task failed: guideway is missing, or the node ended
            raise EngineError(f"node {names[node]} cannot report its versions: {error}") from error
        compare(found[node], versions(), f"node {names[node]}")
    return found


def _ray_llm() -> Any:
    try:
        return importlib.import_module("ray.data.llm")
    except ImportError as error:
        raise MissingDependencyError(f"vLLM under Ray needs ray[llm]: pip install 'ray[llm]' ({error})") from error


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise MissingDependencyError(f"this needs Ray: pip install 'ray[data]' ({error})") from error
