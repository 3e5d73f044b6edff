# fogscale: every target sets up what it needs by itself. `make` alone prints this help.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# Else each of a thousand commands and test processes compiles all libraries again: half of what a start costs.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= $(firstword $(foreach p,python3 python3.13 python3.12 python3.11,$(if $(shell $(p) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo yes),$(p))))
VENV := .venv
BIN := $(VENV)/bin
RESULTS ?= results
TESTBED ?=
SEED ?= 1
SETS ?= 200
RECORDS ?= paper_figures/gesscale/measured
comma := ,

.PHONY: help setup experiment campaign faults compare figures sensitivity plausible calibrate validate artifacts testbed-up testbed-down test test-together test-alone test-testbed fuzz lint format bench lock clean

help: ## Print this help
	@awk -F':.*## ' '/^[a-z-]+:.*## / { \
	    line = sprintf("  make %-13s", $$1); \
	    n = split($$2, words, " "); \
	    for (i = 1; i <= n; i++) { \
	      if (length(line " " words[i]) > 79) { print line; line = sprintf("%20s", "") } \
	      line = line " " words[i] \
	    } \
	    print line }' $(MAKEFILE_LIST)
	@echo
	@echo "  e.g.  make experiment POLICY=gesscale [WORKLOAD=worldcup98|my.csv] [SEED=1]"
	@echo "        make compare POLICIES=gesscale,thr_nlaware [SEEDS=20]"

PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt

$(VENV)/.made:
	@[ -n "$(PYTHON)" ] || { echo "fogscale needs Python 3.11 or newer: install it, or name it with PYTHON=..." >&2; exit 2; }
	@echo "setting up $(VENV) (once, about two minutes) ..." >&2
	@$(PYTHON) -m venv $(VENV) || { echo "python3 has no venv module: install it (Debian: apt-get install python3-venv)" >&2; exit 2; }
	@touch $@

$(VENV)/.ready: pyproject.toml constraints.txt | $(VENV)/.made
	@$(PIP) -e .
	@touch $@

$(VENV)/.ready-testbed: pyproject.toml constraints.txt | $(VENV)/.made
	@$(PIP) -e '.[testbed]'
	@touch $(VENV)/.ready $@

$(VENV)/.ready-dev: pyproject.toml constraints.txt | $(VENV)/.made
	@$(PIP) -e '.[dev]'
	@touch $(VENV)/.ready $(VENV)/.ready-testbed $@

setup: $(VENV)/.ready-dev ## Install everything, tools for developers included

experiment: $(if $(filter local pi,$(TESTBED)),$(VENV)/.ready-testbed,$(VENV)/.ready) ## Run one experiment and write its report (POLICY=, WORKLOAD=, SEED=, TESTBED=local|pi, SPAN=, PROFILE=)
	@[ -n "$(POLICY)" ] || { echo "name a policy: make experiment POLICY=gesscale; '$(BIN)/fogscale policies' lists them" >&2; exit 2; }
	@$(BIN)/fogscale run --policy "$(POLICY)" --seed "$(SEED)" $(if $(TESTBED),--testbed "$(TESTBED)") $(if $(SPAN),--span "$(SPAN)") $(if $(PROFILE),--profile "$(PROFILE)") $(if $(WORKLOAD),--workload "$(WORKLOAD)") $(if $(FRESH),--fresh) --out "$(RESULTS)" --analyze

campaign: $(VENV)/.ready-testbed ## Run and record all of an experiment on a real testbed; goes on where it stopped (TESTBED=, POLICIES=, SCENARIO=, SEEDS=, SPAN=, RECORDS=)
	@$(BIN)/fogscale campaign --testbed "$(or $(TESTBED),local)" $(foreach p,$(subst $(comma), ,$(POLICIES)),--policy "$(p)") $(if $(SCENARIO),--scenario "$(SCENARIO)") $(if $(SEEDS),$(foreach s,$(shell seq 1 $(SEEDS)),--seed $(s))) $(if $(SPAN),--span "$(SPAN)") --out "$(RESULTS)" --records "$(RECORDS)"

faults: $(VENV)/.ready-testbed ## Break the real testbed in twelve ways while an experiment runs (ROUNDS=, SEED=; needs root)
	@$(BIN)/fogscale faults --rounds "$(or $(ROUNDS),1)" --seed "$(SEED)" --out "$(RESULTS)"

compare: $(VENV)/.ready ## Compare policies, run by run with the same load (POLICIES=a,b WORKLOAD=, SEEDS=)
	@[ -n "$(POLICIES)" ] || { echo "name policies: make compare POLICIES=gesscale,thr_nlaware" >&2; exit 2; }
	@$(BIN)/fogscale compare --policies "$(POLICIES)" $(if $(WORKLOAD),--workload "$(WORKLOAD)") $(if $(SEEDS),--seeds "$(SEEDS)") $(if $(FRESH),--fresh) --out "$(RESULTS)"

figures: $(VENV)/.ready ## Regenerate all papers' tables and figures, published values beside ours (PAPER=, FULL=1: what takes long, too)
	@$(BIN)/fogscale figures $(if $(PAPER),--paper "$(PAPER)") $(if $(SEEDS),--seeds "$(SEEDS)") $(if $(FULL),--full) --out "$(RESULTS)"

sensitivity: $(VENV)/.ready ## Repeat a paper's ranking over all plausible parameters (PAPER=, minutes)
	@$(BIN)/fogscale sensitivity $(if $(PAPER),--paper "$(PAPER)") --sets "$(SETS)" --out "$(RESULTS)"

plausible: $(VENV)/.ready ## Find the parameters under which a paper's table is plausible (PAPER=, SETS=; goes on where it stopped)
	@$(BIN)/fogscale plausible $(if $(PAPER),--paper "$(PAPER)") --sets "$(SETS)" $(if $(FRESH),--fresh) --out "$(RESULTS)"

calibrate: $(VENV)/.ready-testbed ## Measure a real testbed and write its profile (TESTBED=local|pi, SET=cost-us=20,2000, REPLICAS=, RTT=)
	@$(BIN)/fogscale calibrate --testbed "$(or $(TESTBED),local)" $(if $(SET),--set "$(SET)") $(if $(REPLICAS),--replicas "$(REPLICAS)") $(if $(RTT),--rtt "$(RTT)") $(if $(FRESH),--fresh) --out "$(RESULTS)"

validate: $(VENV)/.ready ## Simulate recorded real runs again and show real beside simulated (RUNS=folder, PROFILE=)
	@$(BIN)/fogscale validate $(RUNS) $(if $(PROFILE),--profile "$(PROFILE)") --out "$(RESULTS)"

artifacts: $(VENV)/.ready-testbed ## Collect what the local testbed needs into the cache (once; minutes)
	@$(BIN)/fogscale testbed artifacts

testbed-up: $(VENV)/.ready-testbed ## Build the fog on emulated nodes of this machine (needs root)
	@$(BIN)/ansible-playbook -i inventory/local playbooks/preflight.yml
	@$(BIN)/fogscale testbed artifacts
	@$(BIN)/ansible-playbook -i inventory/local site.yml

testbed-down: $(VENV)/.ready-testbed ## Take it down again; nothing is left behind
	@$(BIN)/fogscale testbed down

test: test-together test-alone ## Run every test that needs no cluster

test-together: $(VENV)/.ready-dev
	@$(BIN)/python -m pytest -m "not testbed and not qemu and not quiet" -n auto --maxprocesses 4 --dist loadfile --durations=12 $(ARGS)

test-alone: $(VENV)/.ready-dev # those that judge the clock
	@$(BIN)/python -m pytest -m quiet $(ARGS) || [ $$? = 5 ]  # 5: none of them was chosen

test-testbed: $(VENV)/.ready-dev ## Build emulated nodes and test them for real (needs root)
	@$(BIN)/python -m pytest -m "testbed or qemu" --durations=12 $(ARGS)

fuzz: $(VENV)/.ready-dev ## Try 10,000 damaged files and answers, 300 odd commands, and interruptions (minutes)
	@$(BIN)/python -m tests.fuzz

lint: $(VENV)/.ready-dev ## Check style and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/ansible-lint -q --offline --profile production site.yml playbooks roles inventory

format: $(VENV)/.ready-dev ## Format the code
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(VENV)/.ready-dev ## Measure speed and memory, as ratios side by side (PART=simulation|producing|…)
	@$(BIN)/python -m benchmarks $(PART)

lock: ## Renew constraints.txt with the newest versions that pyproject.toml allows
	@d=$$(mktemp -d); $(PYTHON) -m venv $$d/v; $$d/v/bin/pip install -q -e '.[dev]'; \
	  { echo "# The versions every set-up uses; renewed by 'make lock'."; $$d/v/bin/pip freeze --exclude-editable; } > constraints.txt; rm -rf $$d

clean: ## Remove what the targets above made, but no results
	@rm -rf $(VENV) build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
