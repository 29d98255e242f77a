"""JSON Schemas of Python types: Pydantic's schema, with the restrictions that it omits.

schema.py  the JSON Schema generator
texts.py   the texts of single types
"""
