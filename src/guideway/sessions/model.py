"""`Model`: an engine and its tokenizer, which sessions share."""

from __future__ import annotations

from types import TracebackType

from guideway.engines.base import StepEngine
from guideway.errors import EngineError
from guideway.sampling import Sampler
from guideway.sessions.session import Session
from guideway.vocabulary import Tokenizer, Vocabulary

__all__ = ["Model"]


class Model:
    """What generates: an engine that runs the model, and the tokenizer it was trained with.

    A context manager: leaving it closes the engine. `name` is for messages and tables.
    """

    def __init__(self, engine: StepEngine, tokenizer: Tokenizer, *, name: str = "model") -> None:
        self._engine: StepEngine | None = engine
        self.tokenizer = tokenizer
        self.name = name

    @property
    def engine(self) -> StepEngine:
        """Raises `EngineError` when the model is closed."""
        if self._engine is None:
            raise EngineError(f"the model {self.name} is closed")
        return self._engine

    @property
    def vocabulary(self) -> Vocabulary:
        """Which bytes each token id stands for: what constraints are compiled for."""
        return self.tokenizer.vocabulary

    @property
    def context_size(self) -> int:
        """How many tokens a session holds."""
        return self.engine.context_size

    def session(self, *, seed: int = 0, sampler: Sampler | None = None) -> Session:
        """A new, empty session. `seed`: of its random numbers. `sampler`: greedy by default."""
        return Session(self.engine, self.tokenizer, seed=seed, sampler=sampler)

    def close(self) -> None:
        """Close the engine; a second time does nothing. Sessions of this model can only be looked at after."""
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()

    def __enter__(self) -> Model:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Model({self.name!r}, {self.vocabulary!r})"
