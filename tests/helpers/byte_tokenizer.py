"""A tokenizer of single bytes, in the form that llguidance wraps."""

from __future__ import annotations


class ByteTokenizer:
    """Ids 0 to 255 are bytes; 256 ends a text."""

    def __init__(self) -> None:
        self.eos_token_id, self.bos_token_id = 256, None
        self.tokens = [*(bytes([byte]) for byte in range(256)), b"<eos>"]
        self.special_token_ids = [256]

    def __call__(self, text: str | bytes) -> list[int]:
        return list(text if isinstance(text, bytes) else text.encode())
