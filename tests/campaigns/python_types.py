"""`make python-types`: texts of random Python types, validated by Pydantic; none may be refused.

    python -m tests.campaigns.python_types [--count 3000] [--first 1000]

`--count`: the number of types of which texts are drawn. Types that Pydantic or the library refuses do not count.
"""

from __future__ import annotations

import argparse
import sys

from tests.property.test_python_types import Count, tried


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--first", type=int, default=1000)
    given = parser.parse_args()
    count, seed = Count(), given.first
    while count.types < given.count:
        tried(seed, count)
        seed += 1
    print(
        f"{count.types:,} types, {count.texts:,} texts, {len(count.wrong)} refused by Pydantic; "
        f"{count.refused:,} types refused by the library, {count.refused_by_pydantic:,} by Pydantic"
    )
    for one in count.wrong:
        print(one)
    sys.exit(bool(count.wrong))


if __name__ == "__main__":
    main()
