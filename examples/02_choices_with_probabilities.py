"""Classify a text, with the exact probability of each label: python examples/02_choices_with_probabilities.py [MODEL]."""

import sys

import guideway as gw

LABELS = ["billing", "delivery", "returns", "other"]
PROMPT = "Message: My parcel has not arrived yet.\nLabel: "


def main(name: str = "tiny") -> list[tuple[str, float]]:
    model = gw.load(name)
    label = gw.generate(model, PROMPT, gw.Choice(LABELS))  # the most probable label, token by token
    print("greedy:", label)

    # Exact: the model evaluates each node of the trie of labels once. Nothing is sampled.
    scores = sorted(gw.score(model, PROMPT, LABELS), key=lambda found: -found.probability)
    for found in scores:
        print(f"{found.probability:6.1%}  {found.option}")
    return [(found.option, found.probability) for found in scores]


if __name__ == "__main__":
    main(*sys.argv[1:])
