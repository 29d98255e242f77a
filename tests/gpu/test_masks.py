"""Masks on logits of a CUDA device: the Triton kernel and the operations of PyTorch give the same logits as the CPU."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

from guideway import masks
from guideway.testing import processor_contract
from tests.unit.masks.test_torch import expected

from . import DEVICE

pytestmark = pytest.mark.engine("torch", "triton")
WIDTHS = (1, 31, 32, 33, 320, 4095, 4096, 4097, 128_256, 131_072, 151_936)


def case(chance: np.random.Generator, rows: int, width: int) -> tuple[np.ndarray, masks.Row, list[bool]]:
    """Logits, masks that can be shorter than the logits, and whether each row is masked. One row allows nothing."""
    logits = chance.normal(size=(rows, width)).astype(np.float32)
    words = max(1, masks.words(width) - int(chance.integers(0, 3)))
    density = chance.choice([0.001, 0.1, 0.5, 0.999])
    bits = np.packbits(chance.random((rows, words * 32)) < density, axis=1, bitorder="little").view(np.uint32)
    held = (chance.random(rows) < 0.8).tolist()
    bits[-1], held[-1] = 0, True
    return logits, bits, held


@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("width", WIDTHS)
def test_masks_are_those_of_the_cpu(width: int, kind: str) -> None:
    import torch

    from guideway.masks.torch import TorchMasks

    chance = np.random.default_rng(width)
    for rows in (1, 2, 16, 64) if width > 5000 else (1, 3, 256):
        logits, bits, held = case(chance, rows, width)
        wanted, nothing = expected(logits, bits, held)
        given = torch.tensor(logits).to(DEVICE, getattr(torch, kind))
        wide = torch.cat([given, given], 1)[:, :width]  # rows that are not adjacent in memory
        for one in (given, wide, given.t().contiguous().t()):
            before, apply = one.clone(), TorchMasks()
            made, empty = apply(one, bits, held)
            assert made.device.type == "cuda"
            assert made.dtype is one.dtype
            assert torch.equal(made.cpu(), torch.tensor(wanted).to(one.dtype))
            assert empty == []  # not known without waiting for the device
            assert apply.nothing() == nothing
            assert torch.equal(one, before)


def test_the_triton_kernel_is_used_if_it_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Triton, operations of PyTorch give the same logits."""
    import sys

    import torch

    from guideway.masks import triton
    from guideway.masks.torch import TorchMasks

    calls, original = list[int](), triton.masked

    def counted(*given: object) -> object:
        calls.append(1)
        return original(*given)

    monkeypatch.setattr(triton, "masked", counted)
    logits, bits, held = case(np.random.default_rng(1), 8, 131_072)
    given = torch.tensor(logits, device=DEVICE)
    made, _ = TorchMasks()(given, bits, held)
    assert calls == [1]
    monkeypatch.setitem(sys.modules, "guideway.masks.triton", None)
    other, _ = TorchMasks()(given, bits, held)
    assert calls == [1]
    assert torch.equal(made, other)


def test_contract_of_the_processor() -> None:
    import torch

    from guideway.integrations.transformers import logits_processor

    for dtype, in_place in product((torch.float32, torch.float16), (False, True)):

        def call(processor: Any, ids: object, logits: np.ndarray, dtype: torch.dtype = dtype) -> np.ndarray:
            scores = torch.tensor(logits, device=DEVICE).to(dtype)
            found = processor(torch.tensor(ids, device=DEVICE), scores).float().cpu().numpy()
            exact = scores.float().cpu().numpy()
            assert (np.isneginf(found) | (found == exact)).all()
            return np.where(np.isneginf(found), found, logits)  # float16 rounds; which are masked is what counts

        processor_contract(partial(logits_processor, in_place=in_place), call, rounds=20)
