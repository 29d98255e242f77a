"""JSON Schemas of Python types: Pydantic's schema, with the restrictions that it omits.

schema.py        the JSON Schema generator
core_schemas.py  strict types after functions; configurations of types that occur several times
size.py          the number of types that a type contains
texts.py         JSON Schemas of the texts of single types
patterns.py      patterns of Rust's regex crate and of Python's `re`, in the dialect of JSON Schema
probes.py        types that Pydantic defines by functions; whether a validator of Pydantic accepts a value
json_strings.py  a JSON Schema as a pattern, for JSON text inside a JSON string
"""
