"""The oracle: decides by plain definitions which texts a constraint allows and which prefixes can be completed.

It shares no code with the kernel or with the frontends, and is a readable specification of both. Start with
`regular.py` (Brzozowski's derivatives), then `schemas.py` (what a JSON Schema expects next), then `matcher.py` (the
interface of Matcher, implemented slowly). `symbols.py` defines combinations of constraints with special tokens.
"""
