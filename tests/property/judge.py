"""The `jsonschema` package as an independent validator: exact numbers, patterns as in ECMA-262."""

from __future__ import annotations

import decimal
import json
import re
from types import SimpleNamespace
from typing import Any

import jsonschema
from jsonschema import _keywords, _legacy_keywords, _utils
from jsonschema.validators import extend, validator_for

decimal.getcontext().prec = 400


def _search(pattern: str, text: str, flags: int = 0) -> Any:
    """Python's `$` matches before a last line break as well; ECMA-262's does not."""
    return re.search(pattern.replace("$", r"\Z"), text, flags)


for module in (_keywords, _legacy_keywords, _utils):
    if hasattr(module, "re"):
        module.re = SimpleNamespace(search=_search)  # type: ignore[attr-defined]  # in this process of tests alone


def _digits_only(_: Any, value: Any) -> bool:
    """The integers of draft 4 are defined by their text: without fraction and exponent."""
    return isinstance(value, int) and not isinstance(value, bool)


def _whole(_: Any, value: Any) -> bool:
    if isinstance(value, bool):
        return False
    if isinstance(value, decimal.Decimal):
        return value == value.to_integral_value()
    return isinstance(value, int) or (isinstance(value, float) and value.is_integer())


def _additional_items(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
    """Ignores the keyword if `items` is a boolean; the package would compute the length of the boolean."""
    if isinstance(schema.get("items"), list):
        yield from _legacy_keywords.additionalItems(validator, value, instance, schema)


def loads(text: str) -> Any:
    """JSON text with its numbers exact."""
    return json.loads(text, parse_float=decimal.Decimal)


class Judge:
    """Verdicts of a schema."""

    def __init__(self, schema: Any) -> None:
        exact = loads(json.dumps(schema))
        kind = validator_for(exact, default=jsonschema.Draft202012Validator)
        mended = {"additionalItems": _additional_items} if "additionalItems" in kind.VALIDATORS else {}
        whole = _digits_only if kind is jsonschema.Draft4Validator else _whole
        kind = extend(kind, mended, type_checker=kind.TYPE_CHECKER.redefine("integer", whole))
        if isinstance(exact, dict):
            exact.pop("$schema", None)  # else a reference to the whole document uses the dialect's class
        self.validator = kind(exact, format_checker=jsonschema.FormatChecker(["date", "ipv4", "ipv6", "uuid"]))

    def __call__(self, text: str) -> bool:
        """Whether a text is a valid instance. Raises `ArithmeticError` for numbers beyond what it computes with."""
        if re.search(r"[eE][-+]?0*[1-9]\d{3}", text):
            raise ArithmeticError("an exponent of four digits or more")
        return bool(self.validator.is_valid(loads(text)))
