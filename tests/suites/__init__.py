"""Large collections of schemas with instances: the official suite, and schemas from the wild."""
