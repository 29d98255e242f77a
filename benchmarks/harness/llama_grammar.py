"""llama.cpp's own grammar sampler, by its C interface, over a vocabulary that is written into a GGUF file."""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .data import EOS
from .engines import Engine, Refused, Walker

_CONTROL, _NORMAL = 3, 1


class LlamaCpp(Engine):
    """A mask is a pass of the sampler over all candidates, whose logits are written anew before it (some 30 us)."""

    package = "llama_cpp_python"
    setting = "llama_sampler_init_grammar; llama_sampler_apply over all tokens, llama_sampler_accept"
    repeats = False

    def __init__(self, tokens: Sequence[bytes]) -> None:
        import llama_cpp

        llama_cpp.llama_log_set(_SILENT, ctypes.c_void_p(0))
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "vocabulary.gguf"
            _write(file, tokens)
            settings = llama_cpp.llama_model_default_params()
            settings.vocab_only = True
            self.model = llama_cpp.llama_model_load_from_file(str(file).encode(), settings)
        if not self.model:
            raise Refused("llama.cpp does not load the vocabulary")
        self.vocabulary = llama_cpp.llama_model_get_vocab(self.model)
        self.data = np.zeros(len(tokens), np.dtype([("id", "<i4"), ("logit", "<f4"), ("p", "<f4")]))
        self.data["id"] = np.arange(len(tokens))
        entries = self.data.ctypes.data_as(ctypes.POINTER(llama_cpp.llama_token_data))
        self.array = llama_cpp.llama_token_data_array(data=entries, size=len(tokens), selected=-1, sorted=False)
        super().__init__(tokens)

    def fresh(self) -> None:
        """No cache exists between grammars."""

    def compile(self, schema: Any) -> Any:
        raise Refused("only grammars are measured")

    def grammar(self, text: str) -> Any:
        """Compiles a GBNF grammar. Raises `Refused`."""
        import llama_cpp

        made = llama_cpp.llama_sampler_init_grammar(self.vocabulary, text.encode(), b"root")
        if not made:
            raise Refused("llama.cpp does not take the grammar")
        return made

    def matcher(self, compiled: Any) -> Any:
        import llama_cpp

        return llama_cpp.llama_sampler_clone(compiled)

    def bound(self, matcher: Any) -> Walker:
        import llama_cpp

        logits, array = self.data["logit"], ctypes.byref(self.array)
        apply, accept = llama_cpp.llama_sampler_apply, llama_cpp.llama_sampler_accept

        def fill() -> None:
            logits.fill(0)
            apply(matcher, array)

        def advance(token: int) -> bool:
            if logits[token] == -np.inf:
                return False  # the sampler itself would end the process
            accept(matcher, token)
            return True

        logits.fill(0)
        apply(matcher, array)
        return Walker(advance, fill)

    def allows(self, token: int) -> bool:
        return bool(self.data["logit"][token] != -np.inf)


def _quiet(level: int, text: bytes, user: object) -> None:
    """What llama.cpp logs."""


def _silent() -> Callable[..., None]:
    import llama_cpp

    made: Callable[..., None] = llama_cpp.llama_log_callback(_quiet)
    return made


_SILENT = _silent()


def _write(file: Path, tokens: Sequence[bytes]) -> None:
    import gguf

    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in set(printable)]
    alphabet = {**{b: chr(b) for b in printable}, **{b: chr(0x100 + n) for n, b in enumerate(rest)}}
    names = ["".join(alphabet[b] for b in token) or f"<unused {i}>" for i, token in enumerate(tokens)]
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(names)
    writer.add_token_types([_NORMAL if token else _CONTROL for token in tokens])
    writer.add_token_merges(["Ġ Ġ"])
    writer.add_eos_token_id(EOS)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
