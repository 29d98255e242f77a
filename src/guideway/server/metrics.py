"""Metrics in the text format of Prometheus: counters, gauges and histograms."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

__all__ = ["Metrics"]

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_TOKENS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536)

_Labels = tuple[tuple[str, str], ...]


class _Histogram:
    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


class Metrics:
    """The metrics of a server. Use the object in the thread of the event loop.

    Exported names begin with "guideway:". After this prefix, many names are those of vLLM's metrics.
    """

    _HISTOGRAMS = {  # noqa: RUF012  # a table of constants
        "time_to_first_token_seconds": ("Time from the arrival of a request to its first token.", _SECONDS),
        "time_per_output_token_seconds": ("Time per token after the first.", _SECONDS),
        "e2e_request_latency_seconds": ("Time from the arrival of a request to the end of its response.", _SECONDS),
        "request_prepare_seconds": ("Time to read a request and to compile its constraint.", _SECONDS),
        "request_prompt_tokens": ("Tokens of prompts.", _TOKENS),
        "request_generation_tokens": ("Tokens of generated texts.", _TOKENS),
    }
    _COUNTERS = {  # noqa: RUF012  # a table of constants
        "http_requests_total": "Responses by route and status.",
        "request_success_total": "Texts by finish reason.",
        "prompt_tokens_total": "Tokens of prompts.",
        "generation_tokens_total": "Generated tokens.",
        "forced_tokens_total": "Generated tokens that had no alternative.",
        "requests_cancelled_total": "Requests whose client left.",
    }

    def __init__(self) -> None:
        self._counters: dict[str, dict[_Labels, float]] = {name: {} for name in self._COUNTERS}
        self._histograms: dict[str, dict[_Labels, _Histogram]] = {name: {} for name in self._HISTOGRAMS}
        self._gauges: dict[str, tuple[str, Callable[[], float]]] = {}

    def count(self, name: str, value: float = 1, **labels: str) -> None:
        """Add `value` to the counter with these labels."""
        found, key = self._counters[name], tuple(sorted(labels.items()))
        found[key] = found.get(key, 0) + value

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Add a value to the histogram with these labels."""
        found, key = self._histograms[name], tuple(sorted(labels.items()))
        if key not in found:
            found[key] = _Histogram(self._HISTOGRAMS[name][1])
        found[key].add(value)

    def gauge(self, name: str, text: str, read: Callable[[], float]) -> None:
        """Register a gauge with its description `text`. `read` is called at each export and returns the value."""
        self._gauges[name] = text, read

    def export(self) -> str:
        """Return the metrics in the text format of Prometheus."""
        lines: list[str] = []
        for name, (text, read) in self._gauges.items():
            lines += _head(name, text, "gauge")
            lines.append(f"guideway:{name} {_number(read())}")
        for name, series in self._counters.items():
            lines += _head(name, self._COUNTERS[name], "counter")
            lines += [f"guideway:{name}{_labels(key)} {_number(value)}" for key, value in series.items()]
        for name, histograms in self._histograms.items():
            lines += _head(name, self._HISTOGRAMS[name][0], "histogram")
            for key, one in histograms.items():
                total = 0
                for bound, count in zip((*one.bounds, float("inf")), one.counts, strict=True):
                    total += count
                    label = "+Inf" if bound == float("inf") else _number(bound)
                    lines.append(f"guideway:{name}_bucket{_labels((*key, ('le', label)))} {total}")
                lines.append(f"guideway:{name}_sum{_labels(key)} {one.total:.9g}")
                lines.append(f"guideway:{name}_count{_labels(key)} {total}")
        return "\n".join(lines) + "\n"


def _head(name: str, text: str, kind: str) -> list[str]:
    return [f"# HELP guideway:{name} {text}", f"# TYPE guideway:{name} {kind}"]


def _number(value: float) -> str:
    return f"{value:.9g}"


def _labels(key: _Labels) -> str:
    if not key:
        return ""
    escaped = ((name, value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")) for name, value in key)
    return "{" + ",".join(f'{name}="{value}"' for name, value in escaped) + "}"
