"""Exports: the parsers of llama.cpp, llguidance and xgrammar judge texts as the constraint does.

    python -m tests.campaigns.remote_exports --count 1000

Constraints are the schemas of maskbench-dev and random patterns. llama.cpp takes part where llama-cpp-python is installed, and
xgrammar, which vLLM and SGLang use, where it is installed. llguidance's converter of GBNF judges, too. It makes lexemes of
rules and takes the longest one, so for some grammars it accepts fewer texts; these are counted, and are no failure.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from benchmarks.harness.data import cases

from guideway import constraints as c
from guideway.errors import ConstraintError
from guideway.grammar.recognizer import accepts, byte_automaton
from tests.helpers.byte_tokenizer import ByteTokenizer

MAX_TEXT = 600
"""Texts that are longer are not judged: a lexeme for each character makes llguidance slow."""


class Llguidance:
    """llguidance with a vocabulary of single bytes."""

    def __init__(self) -> None:
        import llguidance

        self.library = llguidance
        self.tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(ByteTokenizer()))

    def judge(self, constraint: c.Constraint[Any], texts: list[str]) -> list[bool] | None:
        """Return the verdicts, or None if the library refuses the grammar for its size."""
        return self._judged("lark", constraint.to_lark(duplicate_keys=True), texts)

    def _judged(self, notation: str, text: str, texts: list[str]) -> list[bool] | None:
        grammar = self.library.grammar_from(notation, text)
        matcher = self.library.LLMatcher(self.tokenizer, grammar, log_level=0)
        if matcher.get_error():
            return None
        return [self._fits(matcher, text) for text in texts]

    def _fits(self, matcher: Any, text: str) -> bool:
        one, data = matcher.deep_copy(), list(text.encode())
        return bool(one.try_consume_tokens(data) == len(data) and one.is_accepting())


class GbnfConverter(Llguidance):
    """llguidance with its converter for GBNF, which vLLM uses."""

    def judge(self, constraint: c.Constraint[Any], texts: list[str]) -> list[bool] | None:
        """Return the verdicts, or None if the library refuses the grammar for its size."""
        return self._judged("gbnf", constraint.to_gbnf(duplicate_keys=True, single_characters=True), texts)


class LlamaCpp:
    """The grammar sampler of llama.cpp with a vocabulary of single bytes."""

    def __init__(self) -> None:
        from benchmarks.harness.llama_grammar import LlamaCpp as Engine

        self.engine = Engine([b"", b"", b"", *(bytes([byte]) for byte in range(256))])

    def judge(self, constraint: c.Constraint[Any], texts: list[str]) -> list[bool] | None:
        """Return the verdicts, or None if the library refuses the grammar for its size."""
        from benchmarks.harness.engines import Refused

        try:
            compiled = self.engine.grammar(constraint.to_gbnf(duplicate_keys=True))
        except Refused:
            return None
        found = []
        for text in texts:
            walker = self.engine.bound(self.engine.matcher(compiled))
            fits = all(self._step(walker, byte + 3) for byte in text.encode())
            found.append(fits and self.engine.allows(2))
        return found

    def _step(self, walker: Any, token: int) -> bool:
        taken = walker.advance(token)
        if taken:
            walker.fill()
        return bool(taken)


class Xgrammar:
    """xgrammar with a vocabulary of single bytes."""

    def __init__(self) -> None:
        import xgrammar

        self.library = xgrammar
        words = [*(bytes([byte]) for byte in range(256)), b"</s>"]
        info = xgrammar.TokenizerInfo(words, xgrammar.VocabType.RAW, vocab_size=257, stop_token_ids=[256])
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)

    def judge(self, constraint: c.Constraint[Any], texts: list[str]) -> list[bool] | None:
        """Return the verdicts."""
        grammar = self.library.Grammar.from_ebnf(constraint.to_gbnf(duplicate_keys=True))
        compiled = self.compiler.compile_grammar(grammar)
        found = []
        for text in texts:
            matcher = self.library.GrammarMatcher(compiled)
            found.append(all(map(matcher.accept_token, text.encode())) and matcher.accept_token(256))
        return found


def constraints_of(count: int, draw: random.Random) -> Iterator[tuple[str, c.Constraint[Any], list[str]]]:
    """Yield constraints with texts."""
    chosen = cases()
    draw.shuffle(chosen)
    for case in chosen[: count * 9 // 10]:
        try:
            made = c.JsonSchema(case.schema, unknown_keywords="ignore")
            own = made.examples(3, seed=1)
        except ConstraintError:
            continue
        texts = [json.dumps(value, ensure_ascii=False) for value, _ in case.instances] + own
        texts += [text[: draw.randrange(len(text) + 1)] for text in own]
        yield case.name, made, [text for text in texts if len(text) <= MAX_TEXT]
    for number in range(count - count * 9 // 10):
        atoms = ["a", "[b-d]", "é", "(ab|c)", r"\d", ".", "[^a]", "(a*b)"]
        pattern = "".join(draw.choice(atoms) + draw.choice(["", "*", "+", "?", "{1,3}"]) for _ in range(4))
        texts = ["".join(draw.choice("abcdé1") for _ in range(draw.randrange(8))) for _ in range(20)]
        yield f"pattern {number}", c.Regex(pattern), texts


def main() -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="Stop after this time, and say how far it came."
    )
    given = parser.parse_args()
    judges: list[Any] = [Llguidance(), GbnfConverter()]
    if importlib.util.find_spec("llama_cpp") is not None:
        judges.append(LlamaCpp())
    else:
        print("llama-cpp-python is not installed: llama.cpp does not judge")
    if importlib.util.find_spec("xgrammar") is not None:
        judges.append(Xgrammar())
    else:
        print("xgrammar is not installed and does not judge")
    found, wrong = Counter[str](), 0
    reasons = Counter[str]()
    ends = time.monotonic() + given.seconds
    for name, constraint, texts in constraints_of(given.count, random.Random(given.seed)):
        if time.monotonic() > ends:
            print(f"stopped for time after {found['constraints']} of {given.count} constraints")
            break
        found["constraints"] += 1
        if found["constraints"] % 50 == 0:
            print(f"{dict(found)}; {wrong} different verdicts", file=sys.stderr, flush=True)
        try:
            constraint.to_gbnf(duplicate_keys=True)
        except ConstraintError as problem:
            found["refused"] += 1
            reasons[str(problem)[:50]] += 1
            continue
        try:
            constraint.to_gbnf()
        except ConstraintError:
            found["with duplicate keys only"] += 1
        automaton = byte_automaton(constraint.grammar())
        own = [accepts(automaton, text) for text in texts]
        for judge in judges:
            kind = type(judge).__name__
            verdicts = judge.judge(constraint, texts)
            if verdicts is None:
                found[f"refused by {kind}"] += 1
                continue
            found[f"texts judged by {kind}"] += len(texts)
            for text, mine, other in zip(texts, own, verdicts, strict=True):
                if mine and not other and isinstance(judge, GbnfConverter):
                    found["texts that the converter of GBNF loses"] += 1
                elif mine != other:
                    wrong += 1
                    print(f"WRONG {kind} {name}: {text[:200]!r}: {other}, the constraint: {mine}", flush=True)
    print(dict(found), dict(reasons))
    print(f"{wrong} different verdicts; refused: {found['refused'] / max(found['constraints'], 1):.1%}")
    return bool(wrong or found["refused"] > 0.1 * found["constraints"])


if __name__ == "__main__":
    sys.exit(main())
