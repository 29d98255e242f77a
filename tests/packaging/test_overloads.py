"""Static types of `generate` and related functions: the constraint determines the result type."""

import subprocess
import sys
from pathlib import Path

from .repository import ROOT

CODE = """
from dataclasses import dataclass
from typing import Literal
from pydantic import BaseModel
import guideway as gw

class Person(BaseModel):
    name: str

@dataclass
class Point:
    x: int

model = gw.load("tiny")
reveal_type(model)
reveal_type(gw.generate(model, "p", Person))
reveal_type(gw.generate(model, "p", Point))
reveal_type(gw.generate(model, "p", gw.Regex("a")))
reveal_type(gw.generate(model, "p", gw.Choice(["a"])))
reveal_type(gw.generate(model, ["p", "q"], Person))
reveal_type(gw.generate(model, "p", Person, n=3))
reveal_type(gw.generate(model, ["p"], Person, n=3))
reveal_type(gw.extract(model, "t", Person))
reveal_type(gw.extract(model, ["t", "u"], Person))
reveal_type(gw.generate(model, "p", gw.Reasoning(Person)))
reveal_type(gw.generate(model, "p", gw.Reasoning(gw.Regex("a"))))
reveal_type(gw.Reasoning({"type": "object"}).parse("{}"))
reveal_type(gw.generate(model, "p", Person, allow_truncation=True))
reveal_type(gw.generate(model, ["p"], Person, return_exceptions=True))
reveal_type(gw.extract(model, ["p"], Person, return_exceptions=True))
reveal_type(gw.complete(model, ["p"], Person, return_exceptions=True, n=2))
reveal_type(model.extract("p", Person, allow_truncation=True, on_truncation="raise"))

async def concurrent() -> None:
    reveal_type(await gw.agenerate(model, "p", Person))
    reveal_type(await gw.agenerate(model, ["p"], Person, return_exceptions=True))
    reveal_type(await model.acomplete("p", Person, allow_truncation=True))
    reveal_type(await model.aextract(["p"], Person))
    reveal_type(gw.astream(model, "p"))

reveal_type(gw.compile(gw.Regex("a"), gw.Vocabulary([b"a", b""], eos_ids=[1])))
"""
TYPES = [
    "Model",
    "Person",
    "Point",
    "str",
    "str",
    "list[Person]",
    "list[Person]",
    "list[list[Person]]",
    "Person",
    "list[Person]",
    "tuple[str, Person]",
    "tuple[str, str]",
    "tuple[str, Any]",
    "Person | None",
    "list[Person | Exception | None]",
    "list[Person | Exception | None]",
    "list[list[guideway.generation.results.Generation[Person | None] | Exception]]",
    "Person | None",
    "Person",
    "list[Person | Exception | None]",
    "guideway.generation.results.Generation[Person | None]",
    "list[Person]",
    "typing.AsyncIterator[str]",
    "Automaton",
]


def test_revealed_types(tmp_path: Path) -> None:
    (tmp_path / "front_door.py").write_text(CODE, "utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml")]
    command += ["--cache-dir", str(ROOT / ".mypy_cache"), str(tmp_path / "front_door.py")]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found = [line.split('"')[1] for line in result.stdout.splitlines() if "Revealed type" in line]
    short = [name.replace("builtins.", "").replace("front_door.", "") for name in found]
    short = [name if "[" in name else name.rpartition(".")[2] for name in short]
    assert result.returncode == 0, result.stdout
    assert short == TYPES
