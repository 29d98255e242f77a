"""What the benchmarks share: data, engines behind one face, timing, reports."""
