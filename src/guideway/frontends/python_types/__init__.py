"""Python types: what Pydantic's JSON Schema loses.

schema.py  a JSON Schema generator that keeps it
texts.py   the texts of single types
"""
