"""Serve many callers with one model; their rows share the model's calls: python examples/08_async_service.py [MODEL]."""

import asyncio
import sys
import time

import guideway as gw

QUESTIONS = ["Is the sky blue? ", "Is snow warm? ", "Is iron heavy? ", "Is tea a drink? "]
ANSWER = gw.Choice(["yes", "no"])


async def caller(model: gw.Model, question: str) -> tuple[str, str]:
    answer = await gw.agenerate(model, question, ANSWER, max_tokens=8)
    return question, answer


async def serve(name: str) -> list[tuple[str, str]]:
    model = gw.load(name)
    start = time.perf_counter()
    # Rows of all callers run in one batch. A caller that is cancelled leaves it at the next step.
    answers = await asyncio.gather(*(caller(model, question) for question in QUESTIONS))
    for question, answer in answers:
        print(f"{question}{answer}")
    print(f"{len(answers)} answers in {time.perf_counter() - start:.2f} s")
    return list(answers)


def main(name: str = "tiny") -> list[tuple[str, str]]:
    return asyncio.run(serve(name))


if __name__ == "__main__":
    main(*sys.argv[1:])
