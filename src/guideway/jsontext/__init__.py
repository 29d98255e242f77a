"""JSON text: decoding and encoding without recursion, with exact numbers, and JSON Pointers.

decoder.py  JSON text <-> values
pointer.py  JSON Pointers (RFC 6901)
"""
