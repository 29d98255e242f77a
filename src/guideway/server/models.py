"""The models that a server offers. Each request leases its model: the model stays loaded until the request ends."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from guideway.arguments import short_repr
from guideway.errors import InvalidRequestError
from guideway.generation import Model
from guideway.loading import load

__all__ = ["PLAIN_TEMPLATE", "FixedModels", "ModelCard", "ServedModels", "load_served", "parse_models"]

PLAIN_TEMPLATE = (
    "{% if tools %}Tools:\n"
    "{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}"
    'Write a call as <tool_call>\n{"name": name, "arguments": arguments}\n</tool_call>\n{% endif %}'
    "{% for message in messages %}"
    "{{ message.role | capitalize }}: {{ message.content or '' }}"
    "{% for call in message.tool_calls or [] %}"
    '<tool_call>\n{"name": {{ call.function.name | tojson }}, "arguments": {{ call.function.arguments | tojson }}}\n</tool_call>'
    "{% endfor %}\n"
    "{% endfor %}"
    "Assistant:"
)
"""The chat template of models that have none. Tool calls are in the notation of Hermes."""


@dataclass(frozen=True)
class ModelCard:
    """The facts about a model that a server publishes.

    Attributes:
        name: The name for requests.
        state: "cold" (not loaded), "loading", "ready" or "draining" (it is unloaded when the requests that use it have
            ended).
        source: The source of the model, such as the argument of `guideway.load` ("gguf:FILE"), a URL or a name.
        context_size: The maximum number of tokens of a sequence; None: unknown, because the model is not loaded or is
            served by another endpoint.
        created: The time at which the server began to offer the model, in seconds since 1970.
        details: Additional members of the model object of `/v1/models`.
    """

    name: str
    state: Literal["cold", "loading", "ready", "draining"]
    source: str
    context_size: int | None = None
    created: int = field(default_factory=lambda: int(time.time()))
    details: Mapping[str, Any] = field(default_factory=dict)


class ServedModels(Protocol):
    """The interface of the models of a server. An implementation decides when models are loaded and unloaded."""

    async def start(self) -> None:
        """Load the models that must be ready before the first request."""

    async def stop(self) -> None:
        """Close the models. The server calls it once, when it stops."""

    def cards(self) -> list[ModelCard]:
        """Return the `ModelCard` of each model."""

    def lease(self, name: str | None) -> Any:
        """Return an async context manager that yields a loaded model. The model stays loaded until the context ends.

        Args:
            name: The name of the model in the request; None: the only model of the server.

        Raises:
            InvalidRequestError: There is no such model (code "model_not_found"), or no name and several models.
        """


class FixedModels:
    """Models that are loaded at the start and stay loaded.

    Args:
        models: By name: a model, or a function that loads it.
        sources: `ModelCard.source` by name. Other models show `Model.name`, or before they are loaded the name for
            requests.

    Raises:
        ValueError: There are no models.
    """

    def __init__(
        self, models: Mapping[str, Model | Callable[[], Model]], sources: Mapping[str, str] | None = None
    ) -> None:
        if not models:
            raise ValueError("a server needs at least one model")
        self._given = dict(models)
        self._sources = dict(sources or {})
        self._loaded: dict[str, Model] = {}
        self._created = int(time.time())

    async def start(self) -> None:
        """Load the models that were given as functions, one after another. Other models are used as they are."""
        from guideway.background import run

        for name, given in self._given.items():
            if name not in self._loaded:
                self._loaded[name] = given if isinstance(given, Model) else await run(given)

    async def stop(self) -> None:
        """Close the models that `start` loaded. An error of one is raised after the others are closed."""
        loaded, self._loaded = self._loaded, {}
        with ExitStack() as stack:
            for name, model in loaded.items():
                if not isinstance(self._given[name], Model):
                    stack.callback(model.close)

    def cards(self) -> list[ModelCard]:
        """Return the `ModelCard` of each model, in the order in which the models were given."""
        found = []
        for name in self._given:
            model = self._loaded.get(name)
            source = self._sources.get(name, name if model is None else model.name)
            if model is None:
                found.append(ModelCard(name, "loading", source, created=self._created))
            else:
                found.append(ModelCard(name, "ready", source, model.context_size, self._created))
        return found

    @asynccontextmanager
    async def lease(self, name: str | None) -> AsyncIterator[Model]:
        """Yield the model with this name; see `ServedModels.lease`."""
        yield self._loaded[known_name(name, list(self._loaded))]


def known_name(name: str | None, names: list[str]) -> str:
    """Return `name` if it is one of `names`. None: return the only name.

    Raises:
        InvalidRequestError: The name is not one of `names`, or it is None and there is not exactly one.
    """
    if name is None and len(names) == 1:
        return names[0]
    if name is None:
        raise InvalidRequestError(f"the body needs 'model', one of {', '.join(names)}", "model", "missing_parameter")
    if name not in names:
        raise InvalidRequestError(
            f"the model {short_repr(name, 120)} does not exist; this server has {', '.join(names)}",
            "model",
            "model_not_found",
        )
    return name


def load_served(source: str, *, chat_template: str | None = None, **options: Any) -> Model:
    """Load a model for a server. A model without a chat template gets `PLAIN_TEMPLATE`.

    Args:
        source: The argument of `guideway.load`.
        chat_template: A Jinja template, in place of that of the model.
        **options: Other arguments of `guideway.load`.

    Raises:
        ModelNotFoundError: There is no such name or file.
        ValueError: `source` names a model served by an API.
    """
    model: Any = load(source, **options)
    if not isinstance(model, Model):
        raise ValueError(  # noqa: TRY004  # the argument has the right type
            f"{short_repr(source)} is a model served by an API; a server runs local models"
        )
    if chat_template is not None or not model.tokenizer.is_instruct:
        model.tokenizer = model.tokenizer.with_chat_template(chat_template or PLAIN_TEMPLATE)
    return model


def parse_models(given: Iterable[str]) -> dict[str, str]:
    """Read texts such as "tiny" and "name=gguf:FILE". Returns the argument of `guideway.load` for each name.

    Without a name, the source is the name.

    Raises:
        ValueError: A name occurs twice, or a name or a source is empty.
    """
    found: dict[str, str] = {}
    for one in given:
        name, equals, source = one.partition("=")
        if not equals or ":" in name:  # "=" after a ":" belongs to a file name
            name = source = one
        if not name or not source:
            raise ValueError(f"a model must be SOURCE or NAME=SOURCE, got {short_repr(one)}")
        if name in found:
            raise ValueError(f"the name {short_repr(name)} is given to two models; write NAME=SOURCE")
        found[name] = source
    return found
