"""Extract typed records from sentences: python examples/01_typed_extraction.py [MODEL]."""

import sys
from typing import Literal

from pydantic import BaseModel, Field

import guideway as gw


class Advert(BaseModel):
    item: str
    price: float = Field(ge=0)
    condition: Literal["new", "used"] | None
    city: str | None


TEXTS = [
    "For sale: mountain bike, used twice, 180 euros, Freiburg.",
    "I am selling my old piano for $950, pick-up in Brighton.",
]


def main(name: str = "tiny") -> list[Advert]:
    model = gw.load(name)
    adverts = gw.extract(model, TEXTS, Advert)  # a list of texts gives a list of records, in one batch
    for advert in adverts:
        print(advert)
    return adverts


if __name__ == "__main__":
    main(*sys.argv[1:])
