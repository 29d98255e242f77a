"""Tests on a CUDA device: `make test-gpu`. Without a device they are skipped."""

import os

DEVICE = os.environ.get("GUIDEWAY_TEST_DEVICE", "cuda")
"""The PyTorch device; `make test-gpu DEVICE=cuda:1` selects another."""

# TF32 rounds float32 factors to 10 bits, so results would differ more.
os.environ.setdefault("NVIDIA_TF32_OVERRIDE", "0")
