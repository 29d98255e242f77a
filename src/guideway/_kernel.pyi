"""The kernel: vocabularies, automata, matchers and token masks."""
