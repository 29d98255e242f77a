"""`make hostile`: hostile input of every kind, one line per class.

    python -m tests.campaigns.hostile [--only CLASS] [--seed 0]

constraints.py  constraints are compiled or refused within a bound of CPU time
scanners.py     scanners take a number of steps that is linear in the length of the input
batches.py      hostile rows beside ordinary ones: asynchronous interface and vLLM backend
faults.py       threads, memory and file operations fail
memory.py       thousands of constraints in one process
"""
