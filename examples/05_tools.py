"""Call Python functions as tools, and validate the arguments: python examples/05_tools.py [MODEL]."""

import sys
from typing import Literal

import guideway as gw


def weather(city: Literal["Rome", "Oslo"], days: int = 1) -> str:
    """Return a forecast.

    Args:
        city: The city.
        days: The number of days.
    """
    return f"{days} day(s) of sun in {city}"


def convert(amount: float, currency: Literal["EUR", "USD"]) -> str:
    """Convert an amount to another currency."""
    return f"{amount * 1.1:.2f} {currency}"


FUNCTIONS = {"weather": weather, "convert": convert}


def main(name: str = "tiny") -> list[str]:
    model = gw.load(name)
    # "hermes" is the notation of Hermes and Qwen models. family=model reads it from the model's chat template.
    replies = gw.ToolCalls(list(FUNCTIONS.values()), family="hermes", choice="required", parallel=False)
    reply = gw.generate(model, "User: How is the weather in Rome?\nAssistant: ", replies, max_tokens=80)
    results = []
    for call in reply.calls:
        results.append(FUNCTIONS[call.name](**call.arguments))  # the arguments fit the signature of the function
        print(f"{call.name}({call.arguments}) = {results[-1]}")
    return results


if __name__ == "__main__":
    main(*sys.argv[1:])
