"""Run a file of requests; a second run continues an interrupted one: python examples/12_batch_file.py [MODEL]."""

import json
import sys
import tempfile
from pathlib import Path

import guideway as gw

REQUESTS = [
    {"custom_id": "year", "prompt": "Founded in ", "regex": "(19|20)[0-9][0-9]"},
    {"custom_id": "mood", "prompt": "I feel ", "choice": ["fine", "tired"], "temperature": 1.0},
    {"custom_id": "bad", "prompt": "Never ", "regex": "(a)\\1"},  # a back-reference: this line gets an error
]


def main(name: str = "tiny") -> list[dict[str, object]]:
    folder = Path(tempfile.mkdtemp())
    source, target = folder / "requests.jsonl", folder / "results.jsonl"
    source.write_text("".join(json.dumps(request) + "\n" for request in REQUESTS), "utf-8")

    model = gw.load(name)
    summary = gw.batch.run(model, source, target)  # after an interruption, the same call continues
    print(summary)
    results = [json.loads(line) for line in target.read_text("utf-8").splitlines()]
    for result in results:
        print(result["custom_id"], result.get("value"), (result.get("error") or {}).get("message"))
    return results


if __name__ == "__main__":
    main(*sys.argv[1:])
