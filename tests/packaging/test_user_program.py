"""A program that annotates every public type is clean for mypy --strict and for pyright."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import guideway as gw
from guideway import errors, types

from .repository import ROOT

PROGRAM = Path(__file__).with_name("user_program.py")


def test_mypy_strict() -> None:
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml")]
    command += ["--cache-dir", str(ROOT / ".mypy_cache"), str(PROGRAM)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.skipif(shutil.which("node") is None, reason="pyright runs on node, which is not installed")
def test_pyright() -> None:
    pytest.importorskip("pyright", reason="needs pyright: pip install pyright")
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--level", "warning", str(PROGRAM)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_program_names_every_public_type() -> None:
    nodes = list(ast.walk(ast.parse(PROGRAM.read_text("utf-8"))))
    used = {one.attr for one in nodes if isinstance(one, ast.Attribute)}
    used |= {one.id for one in nodes if isinstance(one, ast.Name)}
    public = {*gw.__all__, *types.__all__, *errors.__all__}
    assert not public - used
