"""Run a GGUF file with a JSON Schema, and inside llama-cpp-python: python examples/10_llama_cpp.py FILE.gguf."""

import sys

from llama_cpp import Llama

import guideway as gw
from guideway.integrations.llama_cpp import logits_processor

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 20},
        "rating": {"type": "integer", "minimum": 1, "maximum": 5},
    },
    "required": ["city", "rating"],
    "additionalProperties": False,
}


def main(file: str) -> list[dict[str, object]]:
    # As an engine: Guideway's loop appends forced tokens without a model call.
    with gw.load(f"gguf:{file}") as model:
        first = gw.generate(model, "A review of Rome as JSON: ", gw.JsonSchema(SCHEMA), max_tokens=40)

    # Inside llama-cpp-python, which samples.
    llm = Llama(file, n_ctx=512, verbose=False)
    schema = gw.JsonSchema(SCHEMA)
    with logits_processor(schema, llm, max_tokens=40) as processor:
        reply = llm("A review of Oslo as JSON: ", max_tokens=40, logits_processor=[processor])
    second = schema.parse(reply["choices"][0]["text"])
    print(first, second, sep="\n")
    return [first, second]


if __name__ == "__main__":
    main(*sys.argv[1:])
