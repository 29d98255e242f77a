"""A plot of the steps: for each engine, the number of steps that take longer than a given time."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .data import Case
from .runs import Results, shared


def distributions(results: Results, cases: list[Case], path: Path) -> None:
    """Steps (thread CPU time) on the instances that all engines accept, as a log-log survival curve."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = tuple(results.met)
    chosen = list(shared(results, cases, names))
    figure, axes = pyplot.subplots(figsize=(7, 4.2), layout="constrained")
    for name in names:
        met = results.met[name]
        parts = [times[1] for schema, n in chosen if (times := met[schema].steps[n]) is not None]
        if parts:
            steps = np.sort(np.concatenate(parts))
            axes.step(steps, 1 - np.arange(len(steps)) / len(steps), label=name)
    axes.set(xscale="log", yscale="log", xlabel="advance + mask, microseconds of thread CPU time", ylabel="share above")
    axes.set_title(f"{len(chosen)} instances that all accept, Tekken 131k", fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=120)
