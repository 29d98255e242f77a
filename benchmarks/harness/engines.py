"""A common interface to engines: guideway, llguidance, xgrammar. The slower engines are in `others.py`.

Each is used as its own documentation uses it where speed counts: no Python between the caller and the native call that
could be left out, rows allocated once, native JSON Schema front ends with any whitespace between pieces.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

import numpy as np

from .data import EOS

Rows = np.ndarray[Any, np.dtype[np.int32]]  # [n, words]


class Walker(NamedTuple):
    """A matcher's calls; masks go into the engine's row. `step(token, row)`: both in one call, where there is one."""

    advance: Callable[[int], Any]
    fill: Callable[[], Any]
    step: Callable[[int, Any], Any] | None = None
    row: Any = None  # for `step`


class Refused(Exception):
    """The engine refuses the schema."""


class Engine(ABC):
    """`compile` and `start`; `row` holds the latest mask as bits. `repeats`: cheap enough to compile in every pass."""

    package: str
    setting: str
    repeats = True

    def __init__(self, tokens: Sequence[bytes]) -> None:
        self.tokens = tokens
        self.row: np.ndarray[Any, np.dtype[np.int32]] = np.zeros((len(tokens) + 31) // 32, np.int32)
        self.fresh()

    @classmethod
    def title(cls) -> str:
        """Name and version."""
        try:
            return f"{cls.package} {version(cls.package)}"
        except PackageNotFoundError:
            return f"{cls.package} (not installed)"

    @abstractmethod
    def fresh(self) -> None:
        """Clears the caches of earlier schemas."""

    @abstractmethod
    def compile(self, schema: Any) -> Any:
        """Compiles a schema (a document or JSON text). Raises `Refused`."""

    def regex(self, pattern: str) -> Any:
        """Compiles a pattern that the whole text must match. Raises `Refused`."""
        raise Refused("no pattern here")

    @abstractmethod
    def matcher(self, compiled: Any) -> Any:
        """A matcher at the start of the text."""

    @abstractmethod
    def bound(self, matcher: Any) -> Walker:
        """Its calls, as directly as can be."""

    def start(self, compiled: Any) -> Walker:
        """The calls of a new matcher."""
        return self.bound(self.matcher(compiled))

    def batch(self, matchers: list[Any], rows: Rows, threads: int) -> Callable[[], Any]:
        """A call that fills a row per matcher."""
        raise NotImplementedError

    def may_end(self) -> bool:
        """Whether the latest mask contains the end token."""
        return bool(int(self.row[EOS // 32]) >> (EOS % 32) & 1)

    def allows(self, token: int) -> bool:
        """Whether the latest mask contains a token."""
        return bool(int(self.row[token // 32]) >> (token % 32) & 1)


class Guideway(Engine):
    """This library."""

    package = "guideway"
    setting = 'JsonSchema(profile="exact"); Matcher.advance_and_fill; compiled without the cache'

    def fresh(self) -> None:
        import guideway as gw

        special = [i for i, token in enumerate(self.tokens) if not token]
        self.vocabulary = gw.Vocabulary(self.tokens, eos_ids=[EOS], special_ids=special)
        _ = self.vocabulary.kernel  # its tables belong to loading a model, not to the first schema

    def compile(self, schema: Any) -> Any:
        import guideway as gw

        try:
            with gw.cache.disabled():  # else an equal schema of an earlier pass would not be lowered again
                return gw.compile(gw.JsonSchema(schema, profile="exact"), self.vocabulary, cache=False)
        except (gw.GuidewayError, ValueError) as error:
            raise Refused(str(error)) from error

    def regex(self, pattern: str) -> Any:
        import guideway as gw

        try:
            return gw.compile(gw.Regex(pattern), self.vocabulary, cache=False)
        except gw.GuidewayError as error:
            raise Refused(str(error)) from error

    def matcher(self, compiled: Any) -> Any:
        return compiled.matcher()

    def bound(self, matcher: Any) -> Walker:
        row = self.row.view(np.uint32)
        return Walker(matcher.advance, partial(matcher.fill_mask, row), matcher.advance_and_fill, row)

    def batch(self, matchers: list[Any], rows: Rows, threads: int) -> Callable[[], Any]:
        import guideway as gw

        return partial(gw.matcher.fill_masks, matchers, rows.view(np.uint32), threads)


class LLGuidance(Engine):
    """llguidance: LLMatcher, its JSON slices, the mask written through a pointer (what its numpy helper calls)."""

    package = "llguidance"
    setting = "LLMatcher, JSON slices, whitespace_flexible, not lenient; unsafe_compute_mask_ptr, consume_token"

    def __init__(self, tokens: Sequence[bytes]) -> None:
        from llguidance import LLTokenizer, TokenizerWrapper

        class Table:
            eos_token_id, bos_token_id, special_token_ids = EOS, 1, list(range(1000))

            def __init__(self, tokens: Sequence[bytes]) -> None:
                self.tokens = [token or b"<s%d>" % i for i, token in enumerate(tokens)]

            def __call__(self, text: Any) -> list[int]:
                raise NotImplementedError("only masks are measured")

        class Wrapper(TokenizerWrapper):  # type: ignore[misc,unused-ignore]
            def __call__(self, text: str) -> list[int]:
                return []

        self.made = LLTokenizer(Wrapper(Table(tokens)), slices=LLTokenizer.json_slices())
        super().__init__(tokens)

    def fresh(self) -> None:
        """No cache exists between grammars."""

    def compile(self, schema: Any) -> Any:
        from llguidance import LLMatcher

        text = schema if isinstance(schema, str) else json.dumps(schema)
        try:
            return self._checked(LLMatcher.grammar_from_json_schema(text, defaults={"whitespace_flexible": True}))
        except ValueError as error:
            raise Refused(str(error)) from error

    def regex(self, pattern: str) -> Any:
        from llguidance import LLMatcher

        return self._checked(LLMatcher.grammar_from_regex(pattern))

    def _checked(self, grammar: str) -> Any:
        from llguidance import LLMatcher

        made = LLMatcher(self.made, grammar, log_level=0)
        if made.is_error():
            raise Refused(made.get_error())
        return made

    def matcher(self, compiled: Any) -> Any:
        return compiled.deep_copy()

    def bound(self, matcher: Any) -> Walker:
        return Walker(
            matcher.consume_token, partial(matcher.unsafe_compute_mask_ptr, self.row.ctypes.data, self.row.nbytes)
        )

    def batch(self, matchers: list[Any], rows: Rows, threads: int) -> Callable[[], Any]:
        from llguidance import LLExecutor

        pairs = [(matcher, n) for n, matcher in enumerate(matchers)]
        executor, width = LLExecutor(threads), rows.shape[1] * rows.itemsize
        return partial(executor.unsafe_compute_mask_ptr, pairs, rows.ctypes.data, width, len(rows))


class XGrammar(Engine):
    """xgrammar: GrammarCompiler and GrammarMatcher."""

    package = "xgrammar"
    setting = "GrammarCompiler(max_threads=2), any_whitespace, strict_mode; fill_next_token_bitmask, accept_token"
    repeats = False  # seconds for some schemas

    def __init__(self, tokens: Sequence[bytes]) -> None:
        import torch
        import xgrammar as xgr

        self.info = xgr.TokenizerInfo(list(tokens), stop_token_ids=[EOS])
        super().__init__(tokens)
        self.bits = torch.from_numpy(self.row).reshape(1, -1)

    def fresh(self) -> None:
        import xgrammar as xgr

        self.compiler = xgr.GrammarCompiler(self.info, max_threads=2, cache_enabled=False)

    def compile(self, schema: Any) -> Any:
        text = schema if isinstance(schema, str) else json.dumps(schema)
        try:
            return self.compiler.compile_json_schema(text, any_whitespace=True, strict_mode=True)
        except Exception as error:  # it raises RuntimeError and others, by what went wrong inside
            raise Refused(str(error)) from error

    def regex(self, pattern: str) -> Any:
        try:
            return self.compiler.compile_regex(pattern)
        except Exception as error:
            raise Refused(str(error)) from error

    def matcher(self, compiled: Any) -> Any:
        import xgrammar as xgr

        return xgr.GrammarMatcher(compiled)

    def bound(self, matcher: Any) -> Walker:
        return Walker(matcher.accept_token, partial(matcher.fill_next_token_bitmask, self.bits))

    def batch(self, matchers: list[Any], rows: Rows, threads: int) -> Callable[[], Any]:
        import torch
        import xgrammar as xgr

        return partial(xgr.BatchGrammarMatcher(threads).batch_fill_next_token_bitmask, matchers, torch.from_numpy(rows))
