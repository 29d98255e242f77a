"""Proofs by trying: tiny worlds exhaustively, large ones by sampling, always against `tests/oracle`."""
