"""JSON Schemas of Python types: Pydantic's schema, with the restrictions that it omits.

schema.py        the JSON Schema generator
size.py          the number of types in a type
texts.py         the texts of single types
probes.py        types that Pydantic defines by functions, and values that its validators must judge
json_strings.py  JSON text inside a JSON string
"""
