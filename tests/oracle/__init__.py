"""The slow twin: says by plain definitions which texts a constraint allows and which prefixes can still be completed.

It shares no code with the kernel, nor with what turns patterns and schemas into grammars; it is meant to be read next
to them. Start with `regular.py` (Brzozowski's derivatives), then `schemas.py` (what a JSON Schema expects next), then
`matcher.py` (the Matcher face, done slowly).
"""
