"""The writer of JSON that keeps the digits of numbers."""

from __future__ import annotations

import pytest

from guideway.jsontext.encoder import exact_json
from guideway.jsontext.numbers import written_float


@pytest.mark.parametrize("also", [1.5, written_float("1.50")])
def test_nan_is_refused_beside_every_number(also: float) -> None:
    values = [also, float("nan")]
    assert exact_json(values).endswith(", NaN]")
    with pytest.raises(ValueError, match="not JSON compliant"):
        exact_json(values, allow_nan=False)
