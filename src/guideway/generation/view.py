"""`View`: a generation as HTML: its tokens coloured by probability, and the source of a record with its spans."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

from guideway.generation.results import Generation
from guideway.sampling import TokenLogprobs
from guideway.sessions import ModelBase
from guideway.tokenizers import Vocabulary

__all__ = ["View"]

_STYLE = """
.gw { font: 14px/2.1 ui-monospace, monospace; color: #1b1b1b; background: #fff; padding: 1em; border-radius: 6px }
.gw .t { position: relative; padding: 2px 0; white-space: pre-wrap; border-bottom: 3px solid transparent }
.gw .f { outline: 1px dotted #888; outline-offset: -1px; font-style: italic }
.gw .p { color: #777; white-space: pre-wrap }
.gw .n { display: none; position: absolute; left: 0; top: 1.9em; z-index: 9; background: #fff; border: 1px solid #999;
  border-radius: 4px; padding: 4px 8px; font: 12px/1.4 ui-monospace, monospace; white-space: pre; font-style: normal }
.gw .t:hover .n, .gw .t:focus .n { display: block }
.gw .x { color: #b00; text-decoration: line-through }
.gw .s { white-space: pre-wrap; border: 1px solid #8886; border-radius: 4px; padding: 6px }
.gw mark { color: inherit; border-radius: 3px; padding: 1px 0 }
.gw table { border-collapse: collapse; margin: 8px 0 } .gw td, .gw th { padding: 0 10px 0 0; text-align: left }
.gw small { color: #777; display: block; line-height: 1.5 }
@media (prefers-color-scheme: dark) { .gw { color: #eee; background: #1e1e1e } .gw .n { background: #2b2b2b } }
"""
_LEGEND = (
    "background: probability under the model, from red (none) to green (certain); bar below: mass that the constraint"
    " removed; dotted: forced, there was no alternative; point at a token for alternatives, struck through where they"
    " were not allowed"
)


class View:
    """Shows generations with the probabilities of their tokens. A notebook displays it; `save` writes an HTML file.

    Args:
        model: The model that generated them.
        generations: One generation or several, made with `logprobs=`.

    Raises:
        ValueError: A generation has no log-probabilities.
    """

    def __init__(self, model: ModelBase, generations: Generation[Any] | Iterable[Generation[Any]]) -> None:
        given = [generations] if isinstance(generations, Generation) else list(generations)
        for one in given:
            if len(one.steps) != len(one.tokens):
                raise ValueError(
                    "a View needs log-probabilities: generate with logprobs=3, or another number of alternatives"
                )
        self._table = model.vocabulary
        self._generations = given

    def __repr__(self) -> str:
        tokens = sum(len(one.tokens) for one in self._generations)
        return f"View({len(self._generations)} generations, {tokens} tokens)"

    def save(self, path: str | Path) -> None:
        """Write an HTML page.

        Args:
            path: The file.

        Raises:
            OSError: The file cannot be written.
        """
        head = '<!doctype html><meta charset="utf-8"><title>Guideway: a generation</title>'
        Path(path).write_text(f"{head}\n{self._repr_html_()}\n", "utf-8")

    def _repr_html_(self) -> str:
        parts = [_generation(self._table, one) for one in self._generations]
        return f'<style>{_STYLE}</style><div class="gw">{"<hr>".join(parts)}<small>{_LEGEND}</small></div>'


def _generation(table: Vocabulary, one: Generation[Any]) -> str:
    prompt = table.bytes_of(one.state.prompt).decode("utf-8", "replace")
    tokens = "".join(_token(table, step) for step in one.steps)
    facts = f"{len(one.tokens)} tokens, {one.forced} forced; log-probability {one.logprob:.2f}; {one.finish_reason}"
    record = "" if one.source_text is None else _record(one, one.source_text)
    return f'<div>{record}<span class="p">{html.escape(prompt)}</span>{tokens}<small>{facts}</small></div>'


def _record(one: Generation[Any], source: str) -> str:
    """Return the source with the spans of the values, and a table of the fields with their probabilities."""
    spans, fields = one.spans, one.fields
    hues = {place: round(360 * number / max(1, len(fields))) for number, place in enumerate(fields)}
    colours: list[str | None] = [None] * len(source)
    for place, ranges in spans.items():
        for start, end in ranges:
            for at in range(start, end):
                colours[at] = colours[at] or place
    parts = []
    for owner, group in groupby(range(len(source)), key=colours.__getitem__):
        places = list(group)
        text = html.escape(source[places[0] : places[-1] + 1])
        name = "" if owner is None else f'<mark title="{html.escape(owner)}" style="{_colour(hues.get(owner, 0))}">'
        parts.append(f"{name}{text}</mark>" if name else text)
    rows = []
    for place, field in fields.items():
        value = html.escape(json.dumps(field.value, ensure_ascii=False))
        shown = f'<mark style="{_colour(hues[place])}">{value}</mark>' if place in spans else value
        options = ", ".join(
            f"{html.escape(json.dumps(option.value, ensure_ascii=False))} {option.probability:.1%}"
            for option in sorted(field.distribution, key=lambda option: -option.probability)[:8]
        )
        rows.append(
            f"<tr><td>{html.escape(place)}</td><td>{shown}</td><td>{math.exp(field.logprob):.1%}</td>"
            f"<td>{math.exp(field.mask_logprob):.1%}</td><td>{options}</td></tr>"
        )
    head = "<tr><th>field</th><th>value</th><th>model</th><th>mask</th><th>options</th></tr>"
    return f'<div class="s">{"".join(parts)}</div><table>{head}{"".join(rows)}</table>'


def _colour(hue: int) -> str:
    return f"background:hsla({hue},80%,60%,.4)"


def _token(table: Vocabulary, step: TokenLogprobs) -> str:
    share = math.exp(step.logprob)
    hue = 120 * share**0.5  # the square root spreads the colours; most probabilities are near 0 or 1
    style = (
        f"background:hsla({hue:.0f},75%,55%,.45);border-bottom-color:rgba(60,60,200,{min(1.0, step.masked_mass):.2f})"
    )
    text = _shown(table, step.token_id)
    return (
        f'<span class="t{" f" if step.forced else ""}" tabindex="0" style="{style}">{html.escape(text)}'
        f'<span class="n">{_note(table, step, share)}</span></span>'
    )


def _note(table: Vocabulary, step: TokenLogprobs, share: float) -> str:
    lines = [
        f"{html.escape(repr(_shown(table, step.token_id)))}  id {step.token_id}",
        f"model {share:8.4%}   mask {math.exp(step.mask_logprob):8.4%}   removed {step.masked_mass:.4%}",
    ]
    for other in step.alternatives:
        name = html.escape(repr(_shown(table, other.token_id)))
        lines.append(f"{other.probability:9.4%}  " + (name if other.allowed else f'<span class="x">{name}</span>'))
    return "\n".join(lines)


def _shown(table: Vocabulary, token_id: int) -> str:
    """Return the token's text.

    Incomplete UTF-8 is written as hexadecimal bytes, and a token without text as ⏹ or its id.
    """
    data = table.bytes_of([token_id])
    if not data:
        return "⏹" if token_id in table.eos_ids else f"⟨{token_id}⟩"
    try:
        return data.decode().replace("\n", "↵\n")
    except UnicodeDecodeError:
        return f"⟨{data.hex(' ')}⟩"
