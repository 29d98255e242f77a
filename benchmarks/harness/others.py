"""outlines-core, lm-format-enforcer and Formatron with the interface of `engines.py`: reported, without a bar.

They may need minutes for a schema, in native code that cannot be interrupted; `guarded` runs each in a separate process
with a time limit.
"""

from __future__ import annotations

import copy
import json
import multiprocessing
from collections.abc import Callable, Sequence
from typing import Any

from .data import EOS
from .engines import Engine, Refused, Walker


class OutlinesCore(Engine):
    """outlines-core: schema -> regex -> Index over the whole vocabulary -> Guide."""

    package = "outlines_core"
    setting = "build_regex_from_schema, Index, Guide.write_mask_into, Guide.advance(return_tokens=False)"

    def __init__(self, tokens: Sequence[bytes]) -> None:
        from outlines_core import Vocabulary

        table: dict[bytes, list[int]] = {}
        for i, token in enumerate(tokens):
            if token:
                table.setdefault(token, []).append(i)
        self.vocabulary = Vocabulary(EOS, table)
        super().__init__(tokens)

    def fresh(self) -> None:
        """No cache exists between schemas."""

    def compile(self, schema: Any) -> Any:
        from outlines_core import json_schema

        try:
            return self.regex(json_schema.build_regex_from_schema(json.dumps(schema), r"[\n\t ]*"))
        except Exception as error:
            raise Refused(str(error)) from error

    def regex(self, pattern: str) -> Any:
        from outlines_core import Index

        return Index(pattern, self.vocabulary)

    def matcher(self, compiled: Any) -> Any:
        from outlines_core import Guide

        return Guide(compiled)

    def bound(self, matcher: Any) -> Walker:
        guide, row = matcher, self.row
        pointer, words, size = row.ctypes.data, row.size, row.itemsize
        return Walker(lambda token: guide.advance(token, False), lambda: guide.write_mask_into(pointer, words, size))


class LMFormatEnforcer(Engine):
    """lm-format-enforcer: TokenEnforcer over characters, masks as bits."""

    package = "lm-format-enforcer"
    setting = "JsonSchemaParser, TokenEnforcer(use_bitmask=True).get_allowed_tokens; tokens that are no text left out"

    def __init__(self, tokens: Sequence[bytes]) -> None:
        from lmformatenforcer.tokenenforcer import TokenEnforcerTokenizerData

        regular = []
        for i, token in enumerate(tokens):
            try:
                if token:
                    regular.append((i, token.decode(), False))
            except UnicodeDecodeError:
                continue

        def decode(ids: list[int]) -> str:
            return b"".join(tokens[i] for i in ids).decode(errors="replace")

        self.made = TokenEnforcerTokenizerData(regular, decode, EOS, True, len(tokens))
        super().__init__(tokens)

    def fresh(self) -> None:
        """No cache exists between schemas."""

    def compile(self, schema: Any) -> Any:
        from lmformatenforcer import JsonSchemaParser

        try:
            return JsonSchemaParser(schema)
        except Exception as error:
            raise Refused(str(error)) from error

    def matcher(self, compiled: Any) -> Any:
        from lmformatenforcer import TokenEnforcer

        return TokenEnforcer(self.made, copy.deepcopy(compiled))

    def bound(self, matcher: Any) -> Walker:
        enforcer, taken, row = matcher, list[int](), self.row

        def advance(token: int) -> bool:
            taken.append(token)
            return bool(int(row[token // 32]) >> (token % 32) & 1)

        def fill() -> None:
            row[:] = enforcer.get_allowed_tokens(taken).allowed_tokens.numpy()

        return Walker(advance, fill)


class Formatron(Engine):
    """Formatron: schema -> KBNF grammar -> kbnf.Engine."""

    package = "formatron"
    setting = "create_schema, FormatterBuilder; compute_allowed_tokens, Engine.fill_torch_bitmask, accept_token"

    def __init__(self, tokens: Sequence[bytes]) -> None:
        import typing

        import kbnf
        import pydantic

        pydantic.typing = typing  # Formatron 0.5 takes it from there; newer pydantic no longer hands it on
        table = {i: token or b"<s%d>" % i for i, token in enumerate(tokens)}
        self.vocabulary = kbnf.Vocabulary(
            {i: kbnf.Token(token) for i, token in table.items()},
            {i: token.decode(errors="replace") for i, token in table.items()},
        )
        super().__init__(tokens)

    def fresh(self) -> None:
        """No cache exists between schemas."""

    def compile(self, schema: Any) -> Any:
        from formatron.formatter import FormatterBuilder
        from formatron.schemas import json_schema

        try:
            dialect = "https://json-schema.org/draft/2020-12/schema"  # the only one it takes
            given = {**schema, "$id": "https://example.com/bench.json", "$schema": dialect}
            builder = FormatterBuilder()
            builder.append_str(f"{builder.json(json_schema.create_schema(given))}")
            return builder.build(self.vocabulary, lambda ids: b"".join(self.tokens[i] for i in ids).decode())
        except Exception as error:
            raise Refused(str(error)) from error

    def matcher(self, compiled: Any) -> Any:
        compiled.reset()  # one at a time
        return compiled

    def bound(self, matcher: Any) -> Walker:
        formatter, row = matcher, self.row
        engine, pointer = formatter._engine, row.ctypes.data  # as its integrations reach the bits

        def advance(token: int) -> None:
            formatter.accept_token(token)  # raises where it does not fit

        def fill() -> None:
            row[:] = 0
            if formatter.is_completed():
                row[EOS // 32] |= 1 << EOS % 32
            else:
                formatter.compute_allowed_tokens()
                engine.fill_torch_bitmask(pointer)

        return Walker(advance, fill)


def guarded(task: Callable[[], Any], seconds: float) -> Any:
    """Returns the result of a task in a forked process; raises `Refused` if it fails, dies or exceeds the limit."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)

    def run() -> None:
        try:
            theirs.send((True, task()))
        except BaseException as error:
            theirs.send((False, f"{type(error).__name__}: {error}"[:300]))

    child = context.Process(target=run)
    child.start()
    theirs.close()
    try:
        if not ours.poll(seconds):
            raise Refused(f"over {seconds:.0f} s")
        good, made = ours.recv()
    except EOFError:
        raise Refused("the process died") from None
    finally:
        child.kill()
        child.join()
        ours.close()
    if not good:
        raise Refused(str(made))
    return made
