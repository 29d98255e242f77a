"""Vocabularies, tokenizers and digests in other processes: hash seeds, spawn, fork, remote calls."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import subprocess
import sys
import warnings

import cloudpickle
import pytest

import guideway as gw
from guideway.tokenizers import Tokenizer, Vocabulary
from tests.helpers.counts import counts
from tests.helpers.tokenizer_files import FAMILIES

TOKENS = [*(bytes([b]) for b in range(256)), b"ab", b"", b"</s>"]

SCRIPT = """
import pickle, sys
from guideway.tokenizers import Tokenizer, Vocabulary
tokens, serialized, tokenizer = pickle.load(sys.stdin.buffer)
special = {258, 257, *range(200, 256)}
import tokenizers
found = [
    Vocabulary(tokens, eos_ids={258}, special_ids=special).fingerprint,
    Tokenizer.of(tokenizers.Tokenizer.from_str(serialized)).vocabulary.fingerprint,
    tokenizer.vocabulary.fingerprint,
]
print(*found, Tokenizer.of(tokenizers.Tokenizer.from_str(serialized)) == tokenizer)
"""


def vocabulary() -> Vocabulary:
    return Vocabulary(TOKENS, eos_ids={258}, special_ids=[*range(255, 199, -1), 258, 257])


@counts(4, 20)
def test_the_digest_is_the_same_under_other_hash_seeds(count: int) -> None:
    source = FAMILIES["byte-level BPE"]()["tokenizers"].source
    tokenizer = Tokenizer.of(source)
    given = pickle.dumps((TOKENS, source.to_str(), tokenizer))
    expected = [vocabulary().fingerprint, tokenizer.vocabulary.fingerprint, tokenizer.vocabulary.fingerprint, "True"]
    for first in range(0, count, 4):  # four at a time
        started = [
            subprocess.Popen(
                [sys.executable, "-c", SCRIPT],
                env={**os.environ, "PYTHONHASHSEED": str(seed)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            for seed in range(first, first + 4)
        ]
        for process in started:
            out, _ = process.communicate(given, timeout=120)
            assert out.decode().split() == expected


def there(tokenizer: Tokenizer) -> tuple[str, list[int], bytes, str]:
    """Computes results of a tokenizer: digest, ids, a mask, and the id of the process that computed them."""
    import numpy as np

    matcher = gw.compile(gw.Regex("[a-z]+ [0-9]"), tokenizer).matcher()
    row = np.zeros((len(tokenizer.vocabulary) + 31) // 32, dtype=np.uint32)
    matcher.fill_mask(row)
    return tokenizer.vocabulary.fingerprint, tokenizer.encode("naïve 5"), row.tobytes(), str(os.getpid())


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_other_processes(method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    tokenizer = Tokenizer.of(FAMILIES["byte-level BPE"]()["tokenizers"].source)
    here = there(tokenizer)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # from Python 3.12: fork in a process with threads
        with multiprocessing.get_context(method).Pool(2) as pool:
            for found in pool.map(there, [tokenizer] * 4):
                assert found[:3] == here[:3]
                assert found[3] != here[3]


def test_a_remote_call() -> None:
    """As Ray does: cloudpickle sends the function with its closure to a process without shared memory."""
    tokenizer = Tokenizer.of(FAMILIES["byte-level BPE"]()["tokenizers"].source)
    here = there(tokenizer)
    call = cloudpickle.dumps(
        lambda text: (tokenizer.encode(text), tokenizer.vocabulary, hash(tokenizer) == hash(tokenizer))
    )
    script = (
        "import sys, cloudpickle; call = cloudpickle.load(sys.stdin.buffer);"
        "sys.stdout.buffer.write(cloudpickle.dumps(call('naïve 5')))"
    )
    done = subprocess.run([sys.executable, "-c", script], input=call, capture_output=True, check=True)
    ids, found, agrees = pickle.loads(done.stdout)
    assert ids == here[1]
    assert (found, found.fingerprint) == (tokenizer.vocabulary, here[0])
    assert agrees
