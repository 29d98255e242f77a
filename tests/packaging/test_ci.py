"""`.ci/run` runs each target of the Makefile that checks something, or names it among those that it does not run."""

import re

from .repository import ROOT

OTHERS = {"help", "format", "check", "docs", "venv", "build", "stub", "keywords", "clean", "kernel-test", "warnings"}
"""Targets that check nothing, or what another target checks, too."""


def test_each_target_is_run_or_named() -> None:
    makefile, script = ((ROOT / name).read_text("utf-8") for name in ("Makefile", ".ci/run"))
    targets = {name for line in re.findall(r"^([a-z -]+):.*##", makefile, re.MULTILINE) for name in line.split()}
    run = set(re.findall(r"^step \w+ (?:env \S+ )?make ([\w-]+)", script, re.MULTILINE))
    lists = re.findall(r"'([^']+)'", script.partition(r"'not run  %s\n'")[2].partition("\ngrep")[0])
    named = {name for text in lists for name in text.partition(" (")[0].split(", ")}
    assert run
    assert targets - run - named == OTHERS, "name new targets at the end of .ci/run"
    assert named <= targets, "the Makefile does not have all of these"
