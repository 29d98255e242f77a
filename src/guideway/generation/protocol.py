"""`GeneratingModel`: the interface of models whose texts another program generates, and calls of their methods."""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, TypeVar

from guideway.sessions import ModelBase

__all__ = ["AnyModel", "GeneratingModel", "as_model_base", "dispatched"]


class GeneratingModel(ABC):
    """A model whose texts another program generates, such as a model served by an API.

    Each method has the signature of the function of the same name. A model may refuse options that it does not support.
    """

    name: str

    @abstractmethod
    def generate(self, prompt: Any, output: object = None, *, n: int | None = None, **options: Any) -> Any:
        """As `guideway.generate`."""

    @abstractmethod
    def complete(self, prompt: Any, output: object = None, *, n: int | None = None, **options: Any) -> Any:
        """As `guideway.complete`."""

    @abstractmethod
    def extract(self, text: Any, output: object, **options: Any) -> Any:
        """As `guideway.extract`."""

    def complete_extract(self, text: Any, output: object, **options: Any) -> Any:
        """As `guideway.generation.complete_extract`. This implementation raises `NotImplementedError`."""
        raise NotImplementedError(f"{self.name} has no complete_extract; use extract")

    @abstractmethod
    def stream(self, prompt: Any, output: object = None, *, n: int | None = None, **options: Any) -> Iterator[Any]:
        """As `guideway.stream`."""

    @abstractmethod
    def stream_values(self, prompt: Any, output: object, **options: Any) -> Iterator[Any]:
        """As `guideway.stream_values`."""

    @abstractmethod
    def stream_extract(self, text: str, output: object, **options: Any) -> Iterator[Any]:
        """As `guideway.generation.stream_extract`."""

    @abstractmethod
    def score(self, prompt: Any, options: Any, *, end: bool = False, batch_size: int = 16) -> Any:
        """As `guideway.score`."""

    @abstractmethod
    async def agenerate(self, prompt: Any, output: object = None, *, n: int | None = None, **options: Any) -> Any:
        """As `guideway.agenerate`."""

    @abstractmethod
    async def acomplete(self, prompt: Any, output: object = None, *, n: int | None = None, **options: Any) -> Any:
        """As `guideway.acomplete`."""

    @abstractmethod
    async def aextract(self, text: Any, output: object, **options: Any) -> Any:
        """As `guideway.aextract`."""

    @abstractmethod
    def astream(
        self, prompt: Any, output: object = None, *, n: int | None = None, **options: Any
    ) -> AsyncIterator[Any]:
        """As `guideway.astream`."""

    @abstractmethod
    def astream_values(self, prompt: Any, output: object, **options: Any) -> AsyncIterator[Any]:
        """As `guideway.astream_values`."""


AnyModel = ModelBase | GeneratingModel
"""A model that this library runs, or a model whose texts another program generates."""

F = TypeVar("F", bound=Callable[..., Any])


def as_model_base(model: AnyModel) -> ModelBase:
    """Return the argument with the type `ModelBase` for type checkers. Nothing is checked.

    `dispatched` has handled every `GeneratingModel` before; `check_model` refuses other values later.
    """
    return model  # type: ignore[return-value]  # checked by the caller


def dispatched(function: F) -> F:
    """A decorator: if the first argument is a `GeneratingModel`, its method of the same name is called instead.

    It decorates functions, coroutine functions and async generator functions.
    """
    name = function.__name__

    if inspect.isasyncgenfunction(function):

        @functools.wraps(function)
        async def stream(model: Any, *arguments: Any, **options: Any) -> Any:
            found = getattr(model, name) if isinstance(model, GeneratingModel) else functools.partial(function, model)
            items = found(*arguments, **options)
            try:
                async for item in items:
                    yield item
            finally:
                await items.aclose()

        return stream  # type: ignore[return-value]  # the same signature

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def result(model: Any, *arguments: Any, **options: Any) -> Any:
            if isinstance(model, GeneratingModel):
                return await getattr(model, name)(*arguments, **options)
            return await function(model, *arguments, **options)

        return result  # type: ignore[return-value]  # the same signature

    @functools.wraps(function)
    def call(model: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(model, GeneratingModel):
            return getattr(model, name)(*arguments, **options)
        return function(model, *arguments, **options)

    return call  # type: ignore[return-value]  # the same signature
