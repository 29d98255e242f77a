"""Constraints inside the loops of other libraries. Each library is imported in its own folder only.

_common/       a matcher driven from outside: logits processors and sequences of servers
transformers/  `generate` and continuous batching of transformers
mlx/           mlx-lm
llama_cpp/     llama-cpp-python
onnx_genai/    onnxruntime-genai
vllm/          vLLM
sglang/        SGLang
exllamav2/     ExLlamaV2
exllamav3/     ExLlamaV3
"""
