"""A conversation with a tool; each turn reads only its new tokens: python examples/06_chat.py [MODEL]."""

import sys

import guideway as gw


def opening_hours(day: str) -> str:
    """Return the opening hours of the shop.

    Args:
        day: A day of the week.
    """
    return "closed" if day.lower().startswith("sun") else "9 to 18"


def main(name: str = "tiny") -> list[str]:
    model = gw.load(name)
    chat = model.chat(system="You work in a bicycle shop.", max_tokens=24)
    print(chat.ask("Do you sell bells?"))
    mood = chat.ask("Is that good news?", gw.Choice(["yes", "no"]))  # a typed answer
    print(mood, "| evaluated tokens:", chat.counts.run)

    other = chat.fork()  # the same conversation with another second question
    print(other.edit("Is that bad news?", turn=1))

    helper = model.chat(tools=[opening_hours], max_tokens=80)
    answer = helper.run("When are you open on Monday?", max_rounds=3)  # executes the calls until a reply has none
    print(answer, [message["role"] for message in helper.messages])
    return [mood, answer]


if __name__ == "__main__":
    main(*sys.argv[1:])
