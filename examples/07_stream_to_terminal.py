"""Show a record while the model writes it: python examples/07_stream_to_terminal.py [MODEL]."""

import sys

from pydantic import BaseModel
from rich.console import Console
from rich.live import Live
from rich.table import Table

import guideway as gw


class Recipe(BaseModel):
    title: str
    minutes: int
    ingredients: list[str]


PROMPT = """Text: Tomato soup, 30 minutes: tomatoes, onions, salt
Shape: {"title": string, "minutes": integer, "ingredients": [string]}
Record:
"""


def table_of(fields: dict[str, object]) -> Table:
    table = Table("field", "value", title="Recipe")
    for name in Recipe.model_fields:
        table.add_row(name, str(fields.get(name, "…")))
    return table


def main(name: str = "tiny", console: Console | None = None) -> Recipe:
    model = gw.load(name)
    with Live(table_of({}), console=console, refresh_per_second=20) as live:
        for growing in gw.stream_values(model, PROMPT, Recipe, max_tokens=120):
            live.update(table_of(growing.fields))  # the fields that are complete
    return growing.value


if __name__ == "__main__":
    main(*sys.argv[1:])
