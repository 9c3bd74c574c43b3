# Every target sets up what it needs first; `make help-all` lists them.
# The chaos program: make chaos RUNS=20 SEED=7 KINDS=worker,agent MINUTES=10 (docs/chaos.md).
# The Python to use: make setup PYTHON=/path/to/python3.12. More arguments: make test ARGS="-k parse".

BIN := .venv/bin
ARGS ?=
# Two processes for each core: tests wait about half of their time, for servers and for agents.
TESTERS := --numprocesses=$(shell expr 2 \* $$(getconf _NPROCESSORS_ONLN)) --maxprocesses=6
# What failed runs once more, alone; what then passes is named as flaky. `pytest` itself tells at once.
# With FULL=1 the machine is to have all that any test needs, and a test that would be skipped fails.
SUITE := $(BIN)/python -m pytest $(TESTERS) --second-run $(if $(FULL),--nothing-missing)
REST := not recovery and not faces and not newcomer and not release and not world
PROGRAMS := tests/acceptance tests/chaos tests/workflows/test_pipeline.py
CHAOS := $(if $(RUNS),--runs $(RUNS)) $(if $(SEED),--seed $(SEED)) $(if $(MINUTES),--minutes $(MINUTES))

# Where this is set, each start of Python compiles every module anew: workers of pytest, agents, commands.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help help-all setup ready ready-to-run demo test test-machine coverage test-faces test-newcomer page-tools test-recovery test-programs test-release escape test-long test-api test-agents world docs flaky histories pictures lint types contracts dist supply-chain image-bom bench chaos chaos-rolling chaos-pipeline soak faults follow intake-trial upgrade-trial trials lock pin-images container-trial clean

help: ## List the targets that most people need
	@awk -F ':.*##[*] ' '/^[a-z-]+:.*##[*] / { printf "  make %-16s %s\n", $$1, $$2 }' Makefile
	@echo "  make help-all         List all targets"

help-all: ## List all targets
	@awk -F ':.*##[*]? ' '/^[a-z-]+:.*##[*]? / { printf "  make %-16s %s\n", $$1, $$2 }' Makefile

setup: ##* Make .venv from the locked packages; ends with the line that activates it
	@scripts/setup

ready:
	@scripts/setup --quiet

ready-to-run:
	@scripts/setup --quiet --run-only

demo: ready-to-run ##* From an issue to a pull request on a sample repository, in seconds
	@$(BIN)/septet demo $(ARGS)

# Ten minutes on two slow cores: what takes many seconds is made cheaper, or is of the suites below.
test: ready ##* All tests but the suites below
	@$(SUITE) -m "$(REST)" $(ARGS)

test-machine: ready ## Of the tests of `make test`, those that need what not every machine has: tests/skips.toml
	@$(SUITE) -m "needs and $(REST)" $$(sed -n 's/^ *"\(tests\/.*\)",$$/\1/p' tests/skips.toml | sort -u) $(ARGS)

coverage: ready ## The tests of `make test` with the branch coverage of septet/, which is at least 90 %
	@$(SUITE) --cov=septet --cov-branch --cov-report=term-missing:skip-covered --cov-fail-under=90 -m "$(REST)" $(ARGS)

test-faces: ready page-tools ## Commands, HTTP API, tools of agents and page, as people, scripts, agents and browsers meet them
	@$(SUITE) -m "faces and not release" tests/acceptance $(ARGS)

test-newcomer: ready ## A new user's hour, screen by screen: clone, demo, mistakes, gate, page; SHORT=1 takes its first minutes
	@$(SUITE) -m newcomer $(if $(SHORT),tests/newcomer/test_first_minutes.py,tests/newcomer) $(ARGS)

page-tools: # axe-core, which the page is held against, the SDK of Linear and Prism, which the fakes of Linear and GitHub are
	@cmp --silent tests/npm/package-lock.json tests/npm/node_modules/.for.json || \
	    { npm ci --prefix tests/npm --ignore-scripts --no-audit --no-fund --loglevel=error && cp tests/npm/package-lock.json tests/npm/node_modules/.for.json; }

test-recovery: ready ## Whole programs, killed, stopped and started again: workers, servers, hosts, disks
	@$(SUITE) --maxschedchunk=1 -m "recovery and not release" $(PROGRAMS) $(ARGS)

test-programs: ready page-tools ## test-faces and test-recovery in one run: what .ci/run takes
	@$(SUITE) --maxschedchunk=1 -m "(faces or recovery) and not release" $(PROGRAMS) $(ARGS)

test-release: ready page-tools ## Before a release: the slow tests of all suites above
	@$(SUITE) --maxschedchunk=1 -m release --ignore=tests/agents $(ARGS)

escape: ready ## Attacks on the sandbox and on the servers, each tried; writes the table in docs/attacks.md
	@$(BIN)/python scripts/write_escape_table.py
	@$(BIN)/python -m pytest $(TESTERS) tests/escape tests/acceptance/test_doors.py $(ARGS)

test-long: ready ## The property tests with many more examples
	@HYPOTHESIS_PROFILE=long $(BIN)/python -m pytest -m hypothesis --timeout=1800 $(ARGS)

test-api: ready ## The HTTP API under schemathesis for ten minutes
	@SEPTET_API_SECONDS=600 $(BIN)/python -m pytest tests/acceptance/test_http_fuzzed.py --timeout=1800 $(ARGS)

test-agents: ready ## Real agent CLIs from a cache, against a model on loopback; AGENTS="claude codex" ARGS="-k …"
	@scripts/agents install $(AGENTS)
	@scripts/agents run $(BIN)/python -m pytest $(TESTERS) --maxschedchunk=1 tests/agents $(ARGS)

# One process begins all cases, each of which waits most of its time.
world: ready ## What strangers have reported, as whole work orders; SAMPLE=1 takes a few, ARGS="-k stash" those of a name
	@$(if $(SAMPLE),SEPTET_WORLD=sample) $(BIN)/python -m pytest -m world tests/world $(ARGS)
	@$(if $(SAMPLE)$(ARGS),:,$(BIN)/python scripts/write_world_page.py)

flaky: ready ## Named tests thirty times, each time with another seed: TESTS="tests/workflows -k board" RUNS=30
	@$(BIN)/python scripts/try_often.py $(if $(RUNS),--runs $(RUNS)) $(TESTS)

histories: ready ## Record the histories for tests/replay that are missing
	@RECORD_HISTORIES=1 $(BIN)/python -m pytest $(TESTERS) tests/workflows $(ARGS)

docs: ready ## The documentation as a site in build/docs, with offline search; a broken link fails it
	@$(BIN)/python -m zensical build --strict --clean
	@echo 'Read it with: python3 -m http.server --bind 127.0.0.1 --directory build/docs 8000'

pictures: ready ## Take the pictures in docs/ again, and record the terminal; needs chromium
	@$(BIN)/python scripts/take_pictures.py
	@$(BIN)/python scripts/record_terminal.py

lint: ready ## Style and form of the code, and what no committed file may name
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@scripts/check-names
	@$(BIN)/python scripts/check-words

types: ready ## Types of the product, its tests and its programs, strictly
	@$(BIN)/mypy

contracts: ready ## Imports run one way
	@$(BIN)/lint-imports

dist: ready ##* The wheel and the source archive, under dist/
	@rm -rf build dist
	@SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -c "from setuptools.build_meta import build_sdist, build_wheel; build_sdist('dist'); build_wheel('dist')" > /dev/null
	@ls dist/*

supply-chain: dist ## What a release is made of, under dist/: packages and licences, advisories, how it was built
	@scripts/supply-chain

pin-images: ## Write the digests of public images into Dockerfile and compose, where their registry is reached (docker buildx)
	@scripts/pin-images $(ARGS)

image-bom: ## What an image consists of, as CycloneDX, under dist/: IMAGE=septet:latest (needs a Docker daemon)
	@scripts/image-bom $(or $(IMAGE),septet:latest)

bench: ready ## The figures: a table, and JSON under bench/results/
	@$(BIN)/python -m bench $(ARGS)

.PHONY: budget-week
budget-week: ready ## A week of work orders under daily budgets, on a server that skips time
	@$(BIN)/python -m pytest tests/workflows/test_budget_week.py -m release -q -p no:cacheprovider

chaos: ready ## Kill at random under work orders, and see that nothing is lost: a table, and JSON
	@$(BIN)/python -m bench.chaos $(CHAOS) $(if $(KINDS),--kinds $(KINDS)) $(ARGS)

chaos-rolling: ready ## The worker ends every five seconds under 20 work orders: no agent starts twice
	@$(BIN)/python -m bench.chaos $(CHAOS) --kinds worker-rolling $(ARGS)

chaos-pipeline: ready ## Kill at random under a pipeline of 20 issues; RUNS=50 takes so many, each with a seed of its own
	@$(BIN)/python -m bench.chaos.pipelines $(if $(RUNS),--runs $(RUNS)) $(if $(SEED),--seed $(SEED)) $(ARGS)

soak: ready ## Two hours of kills under work orders that are soon forgotten, and what grows meanwhile; ARGS="--minutes 120"
	@$(BIN)/python -m bench.soak $(if $(SEED),--seed $(SEED)) $(ARGS)

faults: ready ## Whole work orders on forges that answer badly: RUNS=1000 SEED=7; a table, and bench/results/faults.json
	@$(BIN)/python -m bench.faults $(if $(RUNS),--runs $(RUNS)) $(if $(SEED),--seed $(SEED)) $(ARGS)

follow: ready ## Pull requests that agents follow, with reviews, conflicts, pushes and killed workers: RUNS=30 SEED=7; a table, and bench/results/follow.json
	@$(BIN)/python -m bench.follow $(if $(RUNS),--runs $(RUNS)) $(if $(SEED),--seed $(SEED)) $(ARGS)

intake-trial: ready ## Issues and comments that come twice and out of order while workers are killed: RUNS=500 SEED=7 KILLS=8
	@$(BIN)/python -m bench.intake $(if $(RUNS),--deliveries $(RUNS)) $(if $(SEED),--seed $(SEED)) $(if $(KILLS),--kills $(KILLS)) $(ARGS)

upgrade-trial: ready ## Kept releases and this commit as workers of one server: killed, ramped, promoted, rolled back; ORDERS=30 in each act
	@$(BIN)/python -m bench.upgrade $(if $(ORDERS),--orders $(ORDERS)) $(ARGS)

# What `.ci/run` does side by side, the longest first. They wait most of their time, and share neither ports nor folders;
# beside them `static` works, which waits for nothing.
TRIALS := chaos agents upgrade chaos-pipeline static world newcomer intake follow faults
TRIAL_static := docs types contracts
TRIAL_agents := test-agents AGENTS="claude codex" ARGS="-k 'claude or codex' -m 'not release'"
TRIAL_chaos := chaos MINUTES=0.7 ARGS="--no-naive --step-seconds 4 --every-seconds 1.2 --partitions 1 --budget 9ktok"
TRIAL_chaos-pipeline := chaos-pipeline ARGS="--issues 4 --step-seconds 0.2"
TRIAL_faults := faults RUNS=14 ARGS="--output /dev/null"
TRIAL_follow := follow RUNS=6 ARGS="--kills 6 --output /dev/null"
TRIAL_intake := intake-trial RUNS=24 ARGS="--kills 1 --output /dev/null"
TRIAL_newcomer := test-newcomer SHORT=1
TRIAL_world := world SAMPLE=1
TRIAL_upgrade := upgrade-trial ORDERS=3 ARGS="--patience 300"

trials: ready ## The short trials of .ci/run, five at a time; each prints all it has to say when it ends
	@$(MAKE) --no-print-directory --jobs=5 --output-sync=recurse $(TRIALS:%=trial-%)

# Nothing reads it again: to write it takes mypy a tenth of its time.
trial-static: export MYPY_CACHE_DIR = /dev/null

.PHONY: $(TRIALS:%=trial-%)
$(TRIALS:%=trial-%): trial-%:
	@echo "-- $*"; begun=$$(date +%s); $(MAKE) $(TRIAL_$*) && echo "-- $* took $$(($$(date +%s) - begun)) s"

lock: ## Make the lock files again from pyproject.toml; ARGS=--upgrade takes the newest versions
	@scripts/lock $(ARGS)

container-trial: ## Work orders through containers built from the Dockerfile, two of them killed (Linux, root)
	@scripts/container-trial $(ARGS)

clean: ## Remove .venv and everything that tools left behind
	rm -rf .venv .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	rm -rf build dist septet.egg-info htmlcov
	find septet activities workflows workers clients tests bench scripts docker -name __pycache__ -prune -exec rm -rf {} +
