"""Generate texts that match a pattern, and read their parts: python examples/03_regex.py [MODEL]."""

import sys

import guideway as gw
from guideway.dsl import digit, exactly, sequence

# Patterns are those of Python's `re`. Captures give the matches of named parts.
version = "v" + gw.Regex("[0-9]{1,2}").capture("major") + "." + gw.Regex("[0-9]{1,2}").capture("minor")

# The same idea with combinators instead of a pattern.
phone = sequence("+49 ", exactly(3, digit), " ", exactly(4, digit))


def main(name: str = "tiny") -> list[str]:
    model = gw.load(name)
    release = gw.complete(model, "The latest release is ", version, max_tokens=16)
    print(release.text, release.captures["major"], release.captures["minor"])

    numbers = gw.generate(model, "Call me: ", phone, n=3, seed=1, max_tokens=24)  # n= draws several texts
    print(*numbers, sep="\n")
    return [release.text, *numbers]


if __name__ == "__main__":
    main(*sys.argv[1:])
