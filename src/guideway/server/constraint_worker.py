"""The program of the processes of `ConstraintWorkers`: translates constraints of requests and stores them on disk."""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import suppress
from typing import Any, BinaryIO

from guideway.batch.bodies import read_body
from guideway.batch.replies import reply_of
from guideway.compiler import store_program
from guideway.constraints.tools import Family
from guideway.jsontext.decoder import loads
from guideway.jsontext.numbers import written_float
from guideway.server.constraint_workers import LENGTH
from guideway.server.errors import status_and_object

__all__ = ["main", "set_priority"]

_PROMPTS: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "a"}]},
    "/v1/completions": {"prompt": "a"},
    "/v1/responses": {"input": "a"},
}


def _answer(given: dict[str, Any]) -> dict[str, Any]:
    url, body = given["url"], given["body"]
    if url not in _PROMPTS:  # `/guideway/tokens` takes the constraints of chat completions
        url = "/v1/chat/completions"
    request = None
    try:
        request = read_body(url, "constraint", {**_PROMPTS[url], **body})
        reply: Any = request.output
        if given["family"] is not None:
            parts: Any = {
                name: tuple(value) if isinstance(value, list) else value for name, value in given["family"].items()
            }
            reply = reply_of(request, Family(**parts))
        if reply is not None:
            store_program(reply)
    except Exception as error:
        status, found = status_and_object(error, request)
        return {"status": status, "error": found}
    return {"status": 200, "error": None}


def main(source: BinaryIO, target: BinaryIO) -> None:
    """Read messages of `ConstraintWorkers` from `source` and write the answers to `target`, until `source` ends."""
    while len(head := source.read(LENGTH.size)) == LENGTH.size:
        text = source.read(LENGTH.unpack(head)[0]).decode("utf-8", "surrogatepass")
        answer = json.dumps(_answer(loads(text, parse_float=written_float))).encode()
        target.write(LENGTH.pack(len(answer)) + answer)
        target.flush()


def set_priority(*, is_patient: bool) -> None:
    """Give generation in the server priority over this process.

    `is_patient`: run only while a processor has nothing else to do, if the system supports this. Then a thread of the
    server that wakes up takes the processor at once, which a low priority alone does not ensure.
    """
    if is_patient and hasattr(os, "SCHED_IDLE"):
        with suppress(OSError):  # not permitted, such as in a sandbox
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
            return
    if hasattr(os, "nice"):
        os.nice(10)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # on Ctrl+C the server ends this process
    set_priority(is_patient="--patient" in sys.argv[1:])
    channel = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints goes to stderr, not to the server
    main(sys.stdin.buffer, channel)
