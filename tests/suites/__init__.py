"""Large collections of schemas with instances: the official suite, and real-world schemas."""
