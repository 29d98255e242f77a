"""Test programs that run for minutes: each has a `main` and a target of the Makefile. The tests run a short part."""
