"""Adapters that apply constraints in the generation loops of other libraries.

Each library is imported only in its own package.

_common/       a matcher driven by another loop: logits processors, and sequences of servers
transformers/  `generate` and continuous batching of transformers
mlx/           mlx-lm
llama_cpp/     llama-cpp-python
onnx_genai/    onnxruntime-genai
vllm/          vLLM
sglang/        SGLang
exllamav2/     ExLlamaV2
exllamav3/     ExLlamaV3
"""
