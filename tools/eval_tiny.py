"""Measures the bundled model: fields and records right, and what parses, on words and templates never trained on.

Usage: python tools/eval_tiny.py [--count 500] [--model src/guideway/tiny] [--out figures.json] [--examples | --verbatim]

Two runs over the same samples: greedy without any constraint (plain onnxruntime), and through ``guideway`` with the
JSON Schema as the constraint, if the library can be imported.  ``--examples`` prints the records of
examples/sentences.jsonl.  ``--verbatim`` compares the constrained answers with those whose free strings must occur in
the text.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from tiny_score import EVAL_SEED, evaluation_set, fields_right, parsed, score
from tiny_verbatim import closed, compare

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "examples")]

from guideway.generation.prompts import extraction_prompt  # noqa: E402  # after the path is set
from tiny_data.samples import Sample  # noqa: E402  # after the path is set

Answer = Callable[[str, dict[str, object]], str]
EOS, LIMIT = 1, 300


class Onnx:
    """Greedy decoding of one prompt at a time with the shipped graph."""

    def __init__(self, folder: Path) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 2
        self.session = onnxruntime.InferenceSession(
            str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
        )
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.config = json.loads((folder / "config.json").read_text())
        self.steps, self.seconds = 0, 0.0

    def __call__(self, text: str, schema: dict[str, object]) -> str:
        ids = self.tokenizer.encode(extraction_prompt(text, schema)).ids
        heads, size = self.config["num_key_value_heads"], self.config["head_dim"]
        empty = np.zeros((1, heads, 0, size), np.float32)
        names = [f"{i}.{part}" for i in range(self.config["num_hidden_layers"]) for part in ("key", "value")]
        past, seen, answer = {f"past_key_values.{name}": empty for name in names}, 0, list[int]()
        while len(answer) < LIMIT:
            fed = np.array([ids], np.int64)
            seen += len(ids)
            feeds = {"input_ids": fed, "attention_mask": np.ones((1, seen), np.int64)}
            feeds["position_ids"] = np.arange(seen - len(ids), seen, dtype=np.int64)[None]
            begun = time.perf_counter()
            logits, *present = self.session.run(None, feeds | past)
            if len(ids) == 1:
                self.steps, self.seconds = self.steps + 1, self.seconds + time.perf_counter() - begun
            past = {f"past_key_values.{name}": value for name, value in zip(names, present, strict=True)}
            token = int(logits[0, -1].argmax())
            if token == EOS:
                break
            answer.append(token)
            ids = [token]
        return self.tokenizer.decode(answer)


def constrained() -> Answer | None:
    """Answers through the library, or None where it is not there yet."""
    try:
        import guideway as gw

        model = gw.load("tiny")
    except (ImportError, AttributeError, NotImplementedError) as error:
        print(f"no constrained run: {error}")
        return None

    def answer(text: str, schema: dict[str, object]) -> str:
        source = gw.JsonSchema(closed(schema), formats="annotate")
        record = gw.generate(model, extraction_prompt(text, schema), source)
        return record if isinstance(record, str) else json.dumps(record, ensure_ascii=False)

    return answer


def run(answer: Answer, samples: list[Sample], title: str, show: int) -> dict[str, float]:
    begun = time.perf_counter()
    answers = [answer(s.text, s.schema) for s in samples]
    figures = score(samples, answers)
    figures["seconds_per_record"] = round((time.perf_counter() - begun) / len(samples), 4)
    print(f"{title}: {figures}")
    hits: Counter[str] = Counter()
    fields: Counter[str] = Counter()
    for sample, text in zip(samples, answers, strict=True):
        right, total = fields_right(sample.record, parsed(text))
        hits[sample.domain] += right
        fields[sample.domain] += total
        if right < total and show > 0:
            show -= 1
            print(f"  text   {sample.text!r}\n  wanted {sample.answer}\n  got    {text}")
    print("  by domain:", {d: round(hits[d] / fields[d], 3) for d in sorted(fields, key=lambda d: hits[d] / fields[d])})
    return figures


def show_examples(answer: Answer) -> None:
    from records import RECORDS

    for line in (ROOT / "examples" / "sentences.jsonl").read_text().splitlines():
        sentence = json.loads(line)
        print(f"{sentence['text']}\n  -> {answer(sentence['text'], RECORDS[sentence['kind']].model_json_schema())}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--model", type=Path, default=ROOT / "src" / "guideway" / "tiny")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--show", type=int, default=0, help="print so many wrong records")
    parser.add_argument("--words", default="eval", choices=["train", "eval"])
    parser.add_argument("--templates", default="eval", choices=["train", "eval"])
    parser.add_argument("--seed", default=EVAL_SEED, help="of the samples")
    parser.add_argument("--examples", action="store_true")
    parser.add_argument("--verbatim", action="store_true")
    parser.add_argument(
        "--num-beams", type=int, help="verbatim_num_beams of --verbatim; by default that of the library"
    )
    arguments = parser.parse_args()
    samples = evaluation_set(arguments.count, arguments.words, arguments.templates, arguments.seed)
    if arguments.verbatim:
        counts = compare(samples, arguments.show, arguments.num_beams)
        print(f"{len(samples)} texts: {counts}")
        if arguments.out:
            arguments.out.write_text(json.dumps(counts, indent=2) + "\n")
        return
    free = Onnx(arguments.model)
    if arguments.examples:
        show_examples(free)
        return
    figures = {"samples": arguments.count, "free": run(free, samples, "free", arguments.show)}
    figures["free"]["milliseconds_per_token"] = round(1000 * free.seconds / max(1, free.steps), 3)
    if guided := constrained():
        figures["constrained"] = run(guided, samples, "constrained", arguments.show)
    if arguments.out:
        arguments.out.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
