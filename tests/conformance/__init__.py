"""Cases as data: what a constraint takes, what it must not take, and what is refused with which error."""
