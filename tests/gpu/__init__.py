"""Tests on a CUDA device: `make test-gpu`. Without a device they are skipped."""

import os

DEVICE = os.environ.get("GUIDEWAY_TEST_DEVICE", "cuda")
"""The PyTorch device; `make test-gpu DEVICE=cuda:1` selects another."""
