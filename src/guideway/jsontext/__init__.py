"""JSON text: a tokenizer, decoding and encoding without recursion and with exact numbers, JSON Pointers.

tokens.py   the tokenizer; tokens with depth and path; nesting depth
decoder.py  JSON text -> values
encoder.py  values -> JSON text
copying.py  copies of JSON-like Python values
numbers.py  exact and bounded numbers
partial.py  the value of the beginning of a JSON text, read piece by piece
pointer.py  JSON Pointers (RFC 6901)
"""
