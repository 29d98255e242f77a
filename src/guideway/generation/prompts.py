"""The prompt of an extraction: `ExtractionPrompt`, which can be replaced.

A model with a chat template gets messages: the instructions, the JSON Schema with the descriptions of its fields, the
examples as earlier turns, and the text. Any other model gets the format of `extraction_prompt`: the text, the skeleton
of the record, and the line "Record:". The bundled model `tiny` was trained on this format, with answers that are
`json.dumps(record, ensure_ascii=False)`.

`shape` writes a JSON Schema as a skeleton that looks like the answer:

    {"name": string, "age": integer | null, "mood": "good" | "bad", "tags": [string], "when": date}

A skeleton is a hint for the model, not the constraint. It does not contain patterns, bounds and conditions. Values that
are nested too deeply become `any`, and so do references by an anchor or to another document.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from guideway.frontends.json_schema.schema_copy import copied
from guideway.jsontext.pointer import target

__all__ = ["ExtractionPrompt", "PromptFunction", "extraction_prompt", "shape"]

MAX_DEPTH = 12
"""The maximum depth of a schema that `shape` writes, references included. Deeper parts become `any`."""

MAX_NODES = 1024
"""The maximum number of sub-schemas that `shape` writes. Further ones become `any` or `...`.

It limits the result for schemas whose size grows exponentially when their references are replaced.
"""

MAX_CHOICES = 64
"""The maximum number of values of an enum, types or branches of a union, or items of `prefixItems` in `shape`.

Further ones are left out, or written as `...`.
"""

MAX_SCHEMA = 20_000
"""The maximum number of characters of a schema in a message. A longer one is written by `shape`."""

PromptFunction = Callable[[str, Mapping[str, object]], "str | list[dict[str, Any]]"]
"""A function of a text and the JSON Schema of its record that returns a prompt: a str, or messages."""

_TASK = (
    "Extract one record from the text, as JSON that fits the JSON Schema. Use only what the text says. If the text does"
    " not say a value, write null if the schema allows null."
)
_NAMED_FORMATS = {"date": "date", "date-time": "datetime", "time": "time", "email": "email"}


@dataclass(frozen=True)
class ExtractionPrompt:
    """The default prompt of `extract`. Subclass it and override `messages` or `plain` to change the wording.

    Attributes:
        instructions: What to extract and how, beyond the schema.
        examples: Pairs of a text and its record as JSON text.
        system: The system message; without a chat template the beginning of the prompt.
    """

    instructions: str | None = None
    examples: Sequence[tuple[str, str]] = ()
    system: str | None = None

    def messages(self, text: str, schema: Mapping[str, object]) -> list[dict[str, Any]]:
        """Return the messages for a model with a chat template.

        Args:
            text: The text to extract from.
            schema: The JSON Schema of the record.
        """
        task = "\n\n".join(part for part in (_TASK, self.instructions, _described(schema)) if part)
        turns = [text for pair in self.examples for text in pair] + [text]
        made = [{"role": "system", "content": self.system}] if self.system else []
        for number, turn in enumerate(turns):
            asks = number % 2 == 0
            content = f"Text:\n{turn}" if asks else turn
            made.append(
                {
                    "role": "user" if asks else "assistant",
                    "content": f"{task}\n\n{content}" if number == 0 else content,
                }
            )
        return made

    def plain(self, text: str, schema: Mapping[str, object]) -> str:
        """Return the prompt for a model without a chat template. It ends with a newline, after which the model answers.

        Args:
            text: The text to extract from.
            schema: The JSON Schema of the record.
        """
        head = "".join(f"{part}\n\n" for part in (self.system, self.instructions) if part)
        shown = "".join(f"{extraction_prompt(text, schema)}{record}\n\n" for text, record in self.examples)
        return head + shown + extraction_prompt(text, schema)


def _described(schema: Mapping[str, object]) -> str:
    """Return the schema as JSON without its titles, which often repeat a key.

    A schema that is too long, or that cannot be written as JSON, is written by `shape`.
    """
    try:
        written = json.dumps(copied(schema, _without_title), ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        written = ""
    if written and len(written) <= MAX_SCHEMA:
        return f"JSON Schema:\n{written}"
    return f"Shape of the record:\n{shape(schema)}"


def _without_title(schema: dict[str, object]) -> None:
    """Remove the title. A property named "title" remains: its value is no string."""
    if isinstance(schema.get("title"), str):
        del schema["title"]


def extraction_prompt(text: str, schema: Mapping[str, object]) -> str:
    """Return a prompt that requests one record of `schema` from `text`. After its last newline, the model answers."""
    return f"Text: {text}\nShape: {shape(schema)}\nRecord:\n"


def shape(schema: Mapping[str, object]) -> str:
    """Write a JSON Schema as one line that looks like its values, such as `{"name": string, "age": integer}`.

    References within the document (`#` and `#/...`) are followed. Depth and size are bounded.
    """
    return _Writer(schema).write(schema, MAX_DEPTH)


class _Writer:
    """Writes one schema. Holds the document, in which references are found, and the number of sub-schemas left."""

    def __init__(self, document: Mapping[str, object]) -> None:
        self._document = document
        self._nodes_left = MAX_NODES

    def write(self, schema: object, depth: int) -> str:
        self._nodes_left -= 1
        if depth <= 0 or self._nodes_left < 0 or not isinstance(schema, Mapping):
            return "any"
        if "const" in schema:
            return _value(schema["const"])
        if isinstance(values := schema.get("enum"), list):
            return _union([_value(value) for value in values[: MAX_CHOICES + 1]])
        if isinstance(reference := schema.get("$ref"), str):
            return self.write(target(self._document, reference), depth - 1)  # for None, it returns "any"
        for keyword in ("anyOf", "oneOf"):
            if isinstance(branches := schema.get(keyword), list):
                return _union([self.write(branch, depth - 1) for branch in branches[: MAX_CHOICES + 1]])
        if isinstance(parts := schema.get("allOf"), list) and parts and "type" not in schema:
            return self.write(parts[0], depth - 1)
        return self._typed(schema, depth)

    def _typed(self, schema: Mapping[object, object], depth: int) -> str:
        kind = schema.get("type")
        if isinstance(kind, list):
            return _union([self._one_type(str(name), schema, depth) for name in kind[:MAX_CHOICES]])
        if isinstance(kind, str):
            return self._one_type(kind, schema, depth)
        if "properties" in schema:
            return self._object(schema, depth)
        if "items" in schema or "prefixItems" in schema:
            return self._array(schema, depth)
        return "any"

    def _one_type(self, kind: str, schema: Mapping[object, object], depth: int) -> str:
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            return self._array(schema, depth)
        if kind == "string":
            return _NAMED_FORMATS.get(str(schema.get("format")), "string")
        return kind if kind in ("integer", "number", "boolean", "null") else "any"

    def _object(self, schema: Mapping[object, object], depth: int) -> str:
        properties = schema.get("properties")
        if isinstance(properties, Mapping) and properties:
            fields = []
            for name, field in properties.items():
                if self._nodes_left <= 0:
                    fields.append("...")
                    break
                fields.append(f"{_value(str(name))}: {self.write(field, depth - 1)}")
            return "{" + ", ".join(fields) + "}"
        extra = schema.get("additionalProperties")
        if isinstance(extra, Mapping):
            return "{string: " + self.write(extra, depth - 1) + "}"
        return "{}" if extra is False else "{string: any}"

    def _array(self, schema: Mapping[object, object], depth: int) -> str:
        leading = schema.get("prefixItems")
        if isinstance(leading, list) and leading:
            return "[" + ", ".join(self.write(item, depth - 1) for item in leading[:MAX_CHOICES]) + "]"
        return f"[{self.write(schema.get('items', {}), depth - 1)}]"


def _value(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return "any"


def _union(names: Sequence[str]) -> str:
    kept = list(dict.fromkeys(names))
    if len(kept) > MAX_CHOICES:
        kept = [*kept[:MAX_CHOICES], "..."]
    return " | ".join(kept) if kept else "any"
