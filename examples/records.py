"""Record types for the demo and the other examples: what to take out of a sentence, as Pydantic models."""

from datetime import date
from typing import Literal

from pydantic import BaseModel


class Person(BaseModel):
    name: str
    age: int | None
    job: str | None
    city: str | None


class Event(BaseModel):
    title: str
    date: date
    place: str
    speakers: list[str]


class Item(BaseModel):
    product: str
    quantity: int


class Order(BaseModel):
    customer: str
    items: list[Item]
    total: float | None


class Ticket(BaseModel):
    reporter: str
    product: str
    priority: Literal["low", "medium", "high", "urgent"]
    resolved: bool


class Advert(BaseModel):
    item: str
    price: float
    city: str | None
    phone: str | None


RECORDS: dict[str, type[BaseModel]] = {
    "person": Person,
    "event": Event,
    "order": Order,
    "ticket": Ticket,
    "advert": Advert,
}
