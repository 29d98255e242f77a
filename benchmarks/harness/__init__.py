"""Shared parts of the benchmarks: data, a common interface to engines, timing, reports."""
