"""Seeded generator of (text, shape, record) samples for the bundled model ``tiny``."""
