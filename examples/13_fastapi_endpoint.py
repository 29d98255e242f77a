"""An endpoint that always returns a valid record: fastapi dev examples/13_fastapi_endpoint.py."""

from typing import Literal

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel, Field

import guideway as gw


class Message(BaseModel):
    text: str = Field(max_length=2000)


class Ticket(BaseModel):
    reporter: str
    product: str
    priority: Literal["low", "medium", "high", "urgent"]
    resolved: bool


app = FastAPI()
model = gw.load("tiny")


@app.post("/tickets")
async def ticket(message: Message) -> Ticket:
    """Extract a ticket. Concurrent requests share the model's calls."""
    try:
        return await gw.aextract(model, message.text, Ticket, max_tokens=200)
    except gw.errors.BudgetTooSmallError as error:
        raise HTTPException(413, str(error)) from error
