"""Draw docstrings and comments from the committed sources, for a test with readers who do not know the project.

    python tools/sample_docstrings.py SEED N [--kernel]

Prints N texts of HEAD with their place and the line of code that follows. The same commit, seed and number give the
same texts. A reader explains each on first reading; at least 18 of 20 must be right.
"""

from __future__ import annotations

import argparse
import ast
import io
import random
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KERNEL = ["base", "vocabulary", "regex", "logits", "grammar", "mask", "matcher"]  # its folders
SHORTEST = 25  # characters; shorter comments are labels
_BLOCK = re.compile(r"(?:^[ \t]*//.*\n)+|//.*$", re.M)


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def committed(folders: list[str], endings: tuple[str, ...]) -> list[str]:
    names = git("ls-tree", "-r", "--name-only", "HEAD", *folders).splitlines()
    return sorted(name for name in names if name.endswith(endings))


def of_python(source: str) -> Iterator[tuple[int, str, str]]:
    """The line, the text and the owner of each docstring, and each run of comments with the code after it."""
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                owner = "module" if isinstance(node, ast.Module) else lines[node.lineno - 1].strip()
                yield node.body[0].lineno, text, owner
    run: list[str] = []
    start = last = 0
    alone_before = False
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        text = token.string.lstrip("#: ")
        alone = not token.line[: token.start[1]].strip()
        if run and alone and token.start[0] == last + 1:
            run.append(text)
        else:
            if run:
                yield start, " ".join(run), lines[last - 1 if not alone_before else min(last, len(lines) - 1)].strip()
            run, start = [text], token.start[0]
        last, alone_before = token.start[0], alone
    if run:
        yield start, " ".join(run), lines[min(last, len(lines) - 1) if alone_before else last - 1].strip()


def of_cpp(source: str) -> Iterator[tuple[int, str, str]]:
    for match in _BLOCK.finditer(source):
        text = " ".join(line.strip().lstrip("/ ") for line in match.group(0).splitlines())
        after = source[match.end() :].lstrip("\n").partition("\n")[0].strip()
        before = source[source.rfind("\n", 0, match.start()) + 1 : match.start()].strip()
        yield source.count("\n", 0, match.start()) + 1, text, before or after


def texts(kernel: bool) -> list[tuple[str, int, str, str]]:
    found = []
    for name in committed(["src/guideway"], (".py",)):
        found += [(name, *one) for one in of_python(git("show", f"HEAD:{name}"))]
    if kernel:
        for name in committed([f"kernel/{name}" for name in KERNEL], (".h", ".cpp")):
            found += [(name, *one) for one in of_cpp(git("show", f"HEAD:{name}"))]
    skipped = ("noqa", "type: ignore", "pragma", "--", "NOLINT")
    return [one for one in found if len(one[2]) >= SHORTEST and not one[2].startswith(skipped)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--kernel", action="store_true", help="draw from the kernel too")
    given = parser.parse_args()
    drawn = random.Random(given.seed).sample(texts(given.kernel), given.count)
    for number, (name, line, text, code) in enumerate(drawn, 1):
        print(f"{number}. {name}:{line}\n   code: {code}\n   {text}\n")


if __name__ == "__main__":
    main()
