"""The steps of readers of streams, requests and files are linear in the length of the input, as those of scanners.

Streams are read in pieces of three characters, as a model or an endpoint sends them.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import guideway as gw
from guideway.batch.bodies import read_body, request_of
from guideway.batch.reading import decoded, split_lines
from guideway.batch.result_file import entries_of
from guideway.cli.inputs import read_examples
from guideway.constraints.wire import from_wire
from guideway.generation.partial_values import progress_of
from guideway.generation.view import _record
from guideway.jsontext.partial import PartialReader
from guideway.remote.check import StreamCheck, automaton_of
from guideway.server.reply_stream import ReplyStream
from tests.campaigns.hostile_checks.scanners import FRAGMENTS, REPLIES, REPLY_STARTS, check_scanner

__all__ = ["CHECKS"]

JSON = FRAGMENTS["JSON text"]
CALLS = FRAGMENTS["tool replies"]
VALUES = ["[", "{", '"a":', '"', "\\", "\\ud800", "1,", "{},", '"a",', "null,", "]", "}", "é"]
ITEMS = [
    '{"role":"user","content":"a"},',
    '{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},',
    '{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"a"}]},',
    '{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},',
    *VALUES,
]
PARTS = [
    '{"kind":"regex","spec":"a"},',
    '{"kind":"choice","spec":["a","b"]},',
    '{"kind":"joined","spec":[0,0]},',
    '{"kind":"joined","spec":[1,0,1]},',
    '{"kind":"json","spec":{"type":"integer"}},',
]
CHAT = '{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"model":"m","messages":['
RESPONSES = '{"custom_id":"a","method":"POST","url":"/v1/responses","body":{"model":"m","input":['
RECORDS = (
    *('{"a":1}', "[1,2]", '"a"', "null", "[]", '{"a":{"b":[{}]}}', "1e9", "true", '"\\u00e9\\n"', "[[[[1]]]]", "-0.50"),
    *('"' + "é" * 40 + '"', "[" * 40 + "]" * 40),
)
EXAMPLES = [*(f'{{"text":"a","record":{record}}}\n' for record in RECORDS), "\n", " ", *VALUES]
RESULTS = [*(f'{{"custom_id":"a","value":{record}}}\n' for record in RECORDS), "\n", '{"a":', *VALUES]


def pieces(text: str) -> Iterable[str]:
    """Return a text in pieces of three characters."""
    return (text[at : at + 3] for at in range(0, len(text), 3))


def partial(text: str) -> None:
    """Read growing JSON text."""
    reader = PartialReader(lambda key, value: None)
    with contextlib.suppress(ValueError, IndexError, KeyError, AttributeError, TypeError):  # syntax is not checked
        for piece in pieces(text):
            reader.push(piece)
        reader.snapshot()


def growing(sources: Iterable[Any]) -> Callable[[str], None]:
    """Return a reader of the growing values of constraints."""

    def read(text: str) -> None:
        for source in sources:
            progress = progress_of(source)
            with contextlib.suppress(ValueError, IndexError, KeyError, AttributeError, TypeError):
                for piece in pieces(text):
                    progress.push(piece)
                progress.finish()

    return read


def reply_parts(text: str) -> None:
    """Divide the replies of a server."""
    for one in REPLIES:
        stream = ReplyStream(one.family, has_calls=True)
        for piece in pieces(text):
            stream.push(piece)
        stream.finish()


def remote_stream(constraint: Any) -> Callable[[str], None]:
    """Return a check of the stream of an endpoint."""
    automaton = automaton_of(constraint)

    def read(text: str) -> None:
        check = StreamCheck(automaton)
        for piece in pieces(text):
            check.feed(piece.encode("utf-8", "replace"))
        check.may_end()

    return read


def requests(text: str) -> None:
    """Read lines of a batch file, and one of them as the body of a server's request."""
    for line in split_lines(io.BytesIO(text.encode("utf-8", "replace"))):
        with contextlib.suppress(gw.GuidewayError):
            entry = decoded(line)
            request_of(entry)
            if isinstance(entry, dict) and "body" in entry:
                read_body("/v1/chat/completions", "a", entry["body"])


def whole_requests(text: str) -> None:
    """Read a list of messages as the body of a request, with its end."""
    requests(text.rstrip(",") + "]}}")


def whole_document(text: str) -> None:
    """Read a wire document with parts, which the root does not use."""
    first = '{"guideway":1,"kind":"regex","spec":"a","parts":[{"kind":"regex","spec":"a"},{"kind":"regex","spec":"b"},'
    from_wire(first + text.rstrip(",") + "]}")


def file_reader(read: Callable[[Path], object]) -> Callable[[str], None]:
    """Return a reader of a file with a text."""

    def run(text: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "lines.jsonl"
            file.write_text(text, "utf-8", errors="replace")
            read(file)

    return run


def page(text: str) -> None:
    """Write the HTML of a record with its source."""
    spans = {f"/{at}": [(at, min(at + 9, len(text)))] for at in range(0, len(text), 50)}
    field = SimpleNamespace(value=text[:20], distribution=[], logprob=-1.0, mask_logprob=-1.0)
    shown = _record(SimpleNamespace(spans=spans, fields=dict.fromkeys(spans, field)), text)  # type: ignore[arg-type]  # its fields
    assert "<script" not in shown


READERS: dict[str, tuple[Callable[[str], object], list[str], tuple[str, ...]]] = {
    "growing JSON": (partial, VALUES, ("[", '{"a":')),
    "growing tool calls": (growing(REPLIES), CALLS, ("", REPLY_STARTS[1])),
    "growing reasoning": (
        growing([gw.Reasoning(gw.JsonSchema({}))]),
        ["<think>", "</think>", "a", "<", "\n", "{"],
        ("<think>",),
    ),
    "reply stream": (reply_parts, CALLS, ("", REPLY_STARTS[1])),
    "remote stream": (remote_stream(gw.JsonSchema({"type": "array"})), VALUES, ("[",)),
    "remote stream of text": (remote_stream(gw.Regex(r"(?:[^\d]|\b\d)*")), ["a", "1", " ", "é", "\n"], ("",)),
    "request lines": (requests, [*ITEMS, "\n"], (CHAT, RESPONSES)),
    "request bodies": (whole_requests, ITEMS[:4], (CHAT, RESPONSES)),
    "wire documents": (whole_document, PARTS, ("",)),
    "wire documents without an end": (
        from_wire,
        [*PARTS, *JSON],
        ('{"guideway":1,"parts":[', '{"guideway":1,"spec":"'),
    ),
    "example files": (file_reader(read_examples), EXAMPLES, ("", '{"text":"')),
    "result files": (file_reader(lambda file: list(entries_of(file))), RESULTS, ("", '{"a":"')),
    "page of a record": (page, ["<", ">", "&", '"', "'", "<script>", "a", "é", "\n"], ("",)),
}

LENGTHS = 300, 1_200  # numbers of repeated fragments
LONGER = {
    "wire documents without an end": (20_000, 80_000),
    "example files": (5_000, 20_000),
    "result files": (5_000, 20_000),
}
"""Lengths for readers that take less than a microsecond per character."""


def _check(name: str, seed: int) -> tuple[bool, str]:
    read, fragments, starts = READERS[name]
    return check_scanner(name, read, fragments, seed, starts, LONGER.get(name, LENGTHS))


CHECKS = {f"reader, {name}": (lambda seed, name=name: _check(name, seed)) for name in READERS}
