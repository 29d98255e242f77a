"""The loops of other libraries under a constraint, each as one call: `loops` yields (name, run) for installed ones.

`run(ids, constraint, max_tokens)` returns the ids of a greedy output after the prompt, without the end token.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from guideway.tokenizers import Tokenizer

from .genai_models import genai_folder

Run = Callable[[list[int], Any, int], list[int]]


def installed(*libraries: str) -> bool:
    return all(importlib.util.find_spec(library) for library in libraries)


def loops(folder: Path, place: Path, stack: ExitStack) -> dict[str, Run]:
    """Every loop that runs here. `folder` has weights and model.onnx, `place` is empty, `stack` ends what was begun."""
    table = Tokenizer.of(folder)
    found: dict[str, Run] = {}
    if installed("torch", "transformers"):
        found |= _transformers(folder, table, stack)
    if installed("onnxruntime_genai"):
        found |= _genai(genai_folder(folder, place / "genai"), table)
    if installed("llama_cpp", "gguf"):
        found |= _llama_cpp(folder, place, table)
    if installed("mlx", "mlx_lm"):
        found |= _mlx(folder, table)
    return found


def _until_end(ids: list[int], table: Tokenizer) -> list[int]:
    ends = [index for index, token_id in enumerate(ids) if token_id in table.eos_ids]
    assert ends, "it did not end"
    return ids[: ends[0]]


def _transformers(folder: Path, table: Tokenizer, stack: ExitStack) -> dict[str, Run]:
    import torch
    from transformers import AutoModelForCausalLM, ContinuousBatchingConfig, GenerationConfig

    from guideway.integrations.transformers import continuous_constraints, logits_processor

    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    eos = table.eos_ids[0]

    def generate(**options: Any) -> Run:
        def run(ids: list[int], constraint: Any, max_tokens: int) -> list[int]:
            processor = logits_processor(constraint, table, max_tokens=max_tokens)
            batch = torch.tensor([ids])
            given = {"max_new_tokens": max_tokens, "do_sample": False, "pad_token_id": eos, "eos_token_id": eos}
            given |= {"logits_processor": [processor], **options}
            if "stopping_criteria" in given:
                given["stopping_criteria"] = [processor.ahead]
            rows = model.generate(batch, attention_mask=torch.ones_like(batch), **given)
            return _until_end(rows[0, len(ids) :].tolist(), table)

        return run

    def continuous() -> Run:
        other = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()  # it changes the model
        config = ContinuousBatchingConfig(num_blocks=16, page_size=32, max_batch_tokens=64)
        manager = other.init_continuous_batching(GenerationConfig(eos_token_id=eos, do_sample=False), config)
        constraints = continuous_constraints(manager, table)
        manager.start()
        stack.callback(manager.stop, block=True)

        def run(ids: list[int], constraint: Any, max_tokens: int) -> list[int]:
            number = constraints.add_request(ids, constraint, max_new_tokens=max_tokens)
            result = manager.get_result(number, timeout=60)
            assert result is not None, manager.background_thread_status.fatal_error
            assert result.error is None
            return _until_end(result.generated_tokens, table)

        return run

    found = {
        "transformers": generate(),
        "transformers, masks ahead": generate(stopping_criteria=True),
        "transformers, assisted": generate(assistant_model=model),
        "transformers, prompt lookup": generate(prompt_lookup_num_tokens=3),
    }
    return found | ({"transformers, continuous": continuous()} if installed("psutil") else {})


def _genai(folder: Path, table: Tokenizer) -> dict[str, Run]:
    import onnxruntime_genai as og

    from guideway.integrations.onnx_genai import logits_processor

    model = og.Model(str(folder))

    def run(ids: list[int], constraint: Any, max_tokens: int, *, steps: bool) -> list[int]:
        params = og.GeneratorParams(model)
        params.set_search_options(max_length=len(ids) + max_tokens, batch_size=1)
        generator = og.Generator(model, params)
        generator.append_tokens(np.array([ids], np.int32))
        processor = logits_processor(constraint, table, max_tokens=max_tokens)
        while not generator.is_done():
            if steps:
                processor.step(generator)
            else:
                processor(generator)
                generator.generate_next_token()
        return [int(i) for i in generator.get_sequence(0)[len(ids) :]]

    return {
        "onnxruntime-genai": lambda *given: run(*given, steps=False),
        "onnxruntime-genai, forced": lambda *given: run(*given, steps=True),
    }


def _llama_cpp(folder: Path, place: Path, table: Tokenizer) -> dict[str, Run]:
    from llama_cpp import Llama

    from guideway.integrations.llama_cpp import logits_processor

    from .gguf_models import write_gguf

    file = write_gguf(folder, place / "model.gguf")
    llm = Llama(str(file), n_ctx=512, type_k=0, type_v=0, flash_attn=False, verbose=False)

    def run(ids: list[int], constraint: Any, max_tokens: int) -> list[int]:
        from llama_cpp import LogitsProcessorList

        found: list[int] = []
        with logits_processor(constraint, table, max_tokens=max_tokens) as processor:
            for token_id in llm.generate(ids, temp=0.0, logits_processor=LogitsProcessorList([processor]), reset=True):
                if token_id in table.eos_ids:
                    return found
                found.append(token_id)
                processor.check()
        raise AssertionError("it did not end")

    return {"llama.cpp": run}


def _mlx(folder: Path, table: Tokenizer) -> dict[str, Run]:
    import mlx.core as mx
    from mlx_lm.generate import BatchGenerator, generate_step, speculative_generate_step
    from mlx_lm.utils import load_model

    from guideway.integrations.mlx import logits_processor

    model = load_model(folder)[0]
    model.set_dtype(mx.float32)

    def one(ids: list[int], constraint: Any, max_tokens: int, **options: Any) -> list[int]:
        step = speculative_generate_step if options else generate_step
        processor = logits_processor(constraint, table, max_tokens=max_tokens)
        found = []
        for token_id, *_ in step(mx.array(ids), model, max_tokens=max_tokens, logits_processors=[processor], **options):
            if int(token_id) in table.eos_ids:
                return found
            found.append(int(token_id))
        raise AssertionError("it did not end")

    def batch(ids: list[int], constraint: Any, max_tokens: int) -> list[int]:
        made = BatchGenerator(model, max_tokens=max_tokens, stop_tokens=[[table.eos_ids[0]]])
        processor = logits_processor(constraint, table, max_tokens=max_tokens)
        (number,) = made.insert([ids], max_tokens=[max_tokens], logits_processors=[[processor]])
        found: list[int] = []
        while responses := made.next_generated():
            found += [int(one.token) for one in responses if one.uid == number]
        return _until_end(found, table)

    return {
        "mlx-lm": one,
        "mlx-lm, speculative": lambda *given: one(*given, draft_model=model, num_draft_tokens=3),
        "mlx-lm, batch": batch,
    }
