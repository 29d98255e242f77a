"""The checks of `make hostile`.

constraints.py  constraints are compiled or refused within a bound of CPU time
scanners.py     scanners take a number of steps that is linear in the length of the input
readers.py      the same for readers of streams, requests and files
files.py        the same for tokenizer files
exports.py      exports, plans and examples end within a bound of CPU time
completions.py  the number of tokens to a complete text is found within a bound of CPU time
deep.py         deep inputs in threads with a stack of 128 KB
batches.py      hostile rows and ordinary rows in one batch: asynchronous interface and vLLM backend
faults.py       threads, memory and file operations fail
allocations.py  each allocation of the kernel fails, with an allocator that is preloaded
stacks.py       tests of constraints, compiler and matchers in threads with a stack of 128 KB
memory.py       thousands of constraints in one process
"""
