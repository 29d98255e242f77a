"""`import guideway` is fast and loads no engine."""

import json
import subprocess
import sys

HEAVY = {"torch", "transformers", "mlx", "onnxruntime", "tokenizers", "pydantic", "typer", "rich", "numpy"}


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_import_loads_nothing_heavy() -> None:
    loaded = json.loads(run("import guideway, json, sys; dir(guideway); print(json.dumps(list(sys.modules)))"))
    assert not HEAVY & {name.split(".")[0] for name in loaded}
    assert "guideway._kernel" not in loaded


def test_import_is_quick() -> None:
    # Processor time: a busy machine must not fail the test.
    code = "import time; start = time.process_time(); import guideway; print(time.process_time() - start)"
    assert min(float(run(code)) for _ in range(5)) < 0.2
