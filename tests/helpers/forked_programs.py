"""Runs Python programs in forks of one interpreter that has already imported the package.

The imports take most of the CPU time of a short program. Each program has its own process, working directory and output.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import traceback
import types
import warnings
from pathlib import Path

ROOT = Path(__file__).parents[2]


class ForkedPrograms:
    """An interpreter that runs programs in forks.

    Use it as a context manager. Warnings are errors, except in a program with `noisy=True`.
    """

    def __init__(self) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"}
        self._server = subprocess.Popen(
            [sys.executable, "-c", "from tests.helpers.forked_programs import serve; serve()"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> ForkedPrograms:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.communicate()
        assert self._server.returncode == 0

    def run(self, program: Path, *, noisy: bool = False) -> tuple[int, str]:
        """Runs a program in its folder and returns its exit status and what it wrote to stdout and stderr."""
        assert self._server.stdin
        assert self._server.stdout
        self._server.stdin.write(json.dumps([str(program), noisy]) + "\n")
        self._server.stdin.flush()
        line = self._server.stdout.readline()
        assert line, f"the server of programs ended with status {self._server.wait()}"
        return int(line), program.with_suffix(".out").read_text("utf-8", "replace")


def _run(program: Path, noisy: bool) -> None:
    """Runs a program as `python program` does, in this process."""
    os.chdir(program.parent)
    with program.with_suffix(".out").open("wb") as out, Path(os.devnull).open("rb") as empty:
        os.dup2(empty.fileno(), 0)
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
    if noisy:
        warnings.simplefilter("default")
    main = types.ModuleType("__main__")
    main.__file__ = str(program)
    sys.modules["__main__"] = main
    sys.argv = [str(program)]
    sys.path[0] = str(program.parent)
    try:
        exec(compile(program.read_text("utf-8"), str(program), "exec"), main.__dict__)
    except Exception:
        traceback.print_exc()
        sys.exit(1)


def serve() -> None:
    import guideway

    for name in guideway.__all__:
        getattr(guideway, name)  # imports its module, but not onnxruntime, which aborts at the exit of a forked process
    for name in ("numpy", "pydantic", "tokenizers", "jinja2", "openai"):
        if importlib.util.find_spec(name) is not None:
            importlib.import_module(name)
    gc.freeze()  # the collections of the programs do not visit what is imported here
    for line in sys.stdin:
        program, noisy = json.loads(line)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python 3.12 warns if a library has started threads
            child = os.fork()
        if not child:
            return _run(Path(program), noisy)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    return None
