"""`guideway batch`, killed by SIGKILL at random times and stopped by a full disk, against an uninterrupted run.

    python -m tests.campaigns.batch_kills [--lines 10000] [--kills 5] [--seed 0]

Every `custom_id` must be in the output exactly once, every line must be whole, and the texts must be those of the
uninterrupted run. The interruptions change which requests run together, and this changes the last digits of logits. Draws
that these digits could decide are repeated (`guideway.sessions.batch_invariance`). A text that still differs is generated
again alone, to show which of the two runs it agrees with; at most one in 10,000 is allowed.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

SCHEMAS: list[dict[str, Any]] = [
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 12},
            "age": {"type": "integer", "minimum": 0, "maximum": 120},
        },
        "required": ["name", "age"],
    },
    {
        "type": "object",
        "properties": {"city": {"enum": ["Paris", "Rome", "Oslo"]}, "ok": {"type": "boolean"}},
        "required": ["city", "ok"],
    },
]
TOLERATED = 1 / 10_000


def line_of(number: int) -> dict[str, Any]:
    """Return one request: in the own format, and for two kinds of constraints and free text in OpenAI's format."""
    schema = SCHEMAS[number // 4 % 2]
    if number % 4 == 0:
        prompt = f"Text: Person number {number} likes tea.\nRecord:\n"
        return {"custom_id": f"own-{number}", "prompt": prompt, "schema": schema, "temperature": 0.9, "max_tokens": 40}
    body: dict[str, Any] = {"model": "tiny", "max_tokens": 16, "temperature": 0.8}
    if number % 4 == 1:
        body |= {"prompt": f"Note {number}: the weather is"}
    elif number % 4 == 2:
        body |= {"prompt": f"Born {number} on ", "structured_outputs": {"regex": "(19|20)[0-9]{2}-[01][0-9]"}}
    else:
        form = {"type": "json_schema", "json_schema": {"name": "record", "schema": schema}}
        body |= {"prompt": f"Text: Anna {number} is in town.\nRecord:\n", "max_tokens": 40, "response_format": form}
    return {"custom_id": f"openai-{number}", "method": "POST", "url": "/v1/completions", "body": body}


def command(source: Path, target: Path) -> list[str]:
    return [sys.executable, "-m", "guideway", "batch", str(source), str(target)]


def texts_of(path: Path) -> dict[str, str]:
    """Return the texts by identifier. Fails for a torn line, an error or a repeated identifier."""
    data = path.read_bytes()
    assert data.endswith(b"\n"), "the last line has no end"
    found: dict[str, str] = {}
    for line in data.decode().split("\n")[:-1]:
        entry = json.loads(line)
        assert entry["custom_id"] not in found, f"{entry['custom_id']} is there twice"
        if "response" in entry:
            assert entry["error"] is None
            assert entry["response"]["status_code"] == 200, line
            found[entry["custom_id"]] = entry["response"]["body"]["choices"][0]["text"]
        else:
            assert "error" not in entry, line
            found[entry["custom_id"]] = entry["text"]
    return found


def lines_in(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def killed_run(source: Path, target: Path, total: int, kills: int, draw: random.Random) -> Counter[str]:
    """Run with kills at random times, and finish. Returns how often the last line was torn."""
    counts: Counter[str] = Counter()
    goals = sorted(draw.sample(range(1, total - total // 20), kills))
    for number, goal in enumerate(goals):
        process = subprocess.Popen(command(source, target), stderr=subprocess.DEVNULL)
        while lines_in(target) < goal and process.poll() is None:
            time.sleep(draw.uniform(0.05, 0.3))
        assert process.poll() is None, "the run ended before it was killed"
        process.kill()
        process.wait()
        data = target.read_bytes()
        counts["torn"] += not data.endswith(b"\n")
        if number % 2:  # a kill rarely tears a line, which one call writes; a power failure does
            with target.open("ab") as file:
                file.write(data[: draw.randint(1, 200)].rstrip(b"\n"))
            counts["torn by hand"] += 1
        print(f"  killed with {lines_in(target):,} lines", flush=True)
    subprocess.run(command(source, target), check=True, stderr=subprocess.DEVNULL)
    return counts


def full_disk(source: Path, target: Path, most: int) -> None:
    """Run with a limit of the file's size, which acts like a full disk; then continue without it."""
    result = subprocess.run(
        command(source, target),
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)),
    )
    assert result.returncode == 2, result.stderr
    assert "cannot write" in result.stderr, result.stderr
    before = texts_of(target)
    assert before
    assert target.stat().st_size <= most
    print(f"  stopped with {len(before):,} lines: {result.stderr.strip().splitlines()[-1]}")
    subprocess.run(command(source, target), check=True, stderr=subprocess.DEVNULL)
    after = texts_of(target)
    assert {name: after[name] for name in before} == before, "a result was lost"


def compared(whole: dict[str, str], other: dict[str, str], lines: dict[str, Any]) -> int:
    assert whole.keys() == other.keys(), f"{len(whole.keys() ^ other.keys())} identifiers are not in both runs"
    different = [name for name in whole if whole[name] != other[name]]
    if different:
        import guideway as gw

        model = gw.load("tiny")
        for name in different:
            (alone,) = gw.batch(model, [lines[name]])
            agrees = [
                kind for kind, texts in (("whole", whole), ("other", other)) if texts[name] == alone.generation.text
            ]
            print(f"  {name}: {whole[name]!r} / {other[name]!r}; alone as in {agrees}")
    return len(different)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    draw = random.Random(given.seed)
    lines = {one["custom_id"]: one for one in map(line_of, range(given.lines))}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        source, few = place / "in.jsonl", place / "few.jsonl"
        source.write_text("".join(json.dumps(one) + "\n" for one in lines.values()))
        few.write_text("".join(json.dumps(one) + "\n" for one in [*lines.values()][: given.lines // 10]))
        start = time.monotonic()
        subprocess.run(command(source, place / "whole.jsonl"), check=True)
        whole = texts_of(place / "whole.jsonl")
        print(f"uninterrupted: {len(whole):,} lines, {time.monotonic() - start:.0f} s", flush=True)
        counts = killed_run(source, place / "killed.jsonl", given.lines, given.kills, draw)
        different = compared(whole, texts_of(place / "killed.jsonl"), lines)
        print(
            f"{given.kills} kills: {len(whole):,} identifiers once each, {different} texts differ; {dict(counts)}",
            flush=True,
        )
        assert different <= max(1, given.lines * TOLERATED)
        size = (place / "whole.jsonl").stat().st_size
        full_disk(few, place / "full.jsonl", size // 25)
        short = {name: text for name, text in whole.items() if name in texts_of(place / "full.jsonl")}
        different = compared(short, texts_of(place / "full.jsonl"), lines)
        print(f"full disk: {len(short):,} identifiers once each, {different} texts differ")
        assert different <= 1


if __name__ == "__main__":
    main()
