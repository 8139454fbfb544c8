# Ibid. `make run` and `make test` do all the set-up themselves; `make help` lists the other targets.
# Variables: STAGE, REGION (deploy), PORT, IBID_HOME, IBID_PYTHON (the interpreter that creates .venv), ARGS (further arguments for serve, pytest, eval, corpus, bench).

SHELL := /bin/sh
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help

PYTHON := .venv/bin/python
OSLS := node_modules/.bin/osls
TEMPLATE := .serverless/cloudformation-template-update-stack.json

# Sets $$python to the first interpreter that is new enough. Each is tried by running it, because a version manager's shim may exist and fail.
define find_python
new_enough='import sys; sys.exit(sys.version_info < (3, 11))'; python=; \
if [ -n "$$IBID_PYTHON" ]; then \
	"$$IBID_PYTHON" -c "$$new_enough" 2>/dev/null && python=$$IBID_PYTHON; \
elif $(PYTHON) -c 'import pip' 2>/dev/null; then python=$(PYTHON); \
else for name in python3.13 python3.12 python3.11 python3 python3.14 python; do \
	"$$name" -c "$$new_enough" 2>/dev/null && python=$$name && break; done; \
fi; \
if [ -z "$$python" ]; then \
	echo "ibid: no Python 3.11 or newer found$${IBID_PYTHON:+ at IBID_PYTHON=$$IBID_PYTHON}. Install one, or say where it is: IBID_PYTHON=/path/to/python3 make $(or $(MAKECMDGOALS),run)" >&2; exit 1; \
fi
endef

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-15s %s\n", $$1, $$2}' Makefile

.PHONY: run
run: installed-run ## Install, start the embedded database, migrate it, and print the address to open (PORT=… changes the port)
	@exec $(PYTHON) -m functions.local serve $(ARGS)

.PHONY: test
test: installed-test installed-osls ## Install, then run every test (ARGS="tests/sql -x" runs some of them)
	@$(PYTHON) -m tests.support.preflight
	@$(PYTHON) -m pytest $(ARGS)

.PHONY: check
check: installed-test ## Check format, lint, types, import rules and SQL stamps; run it before each commit
	$(PYTHON) -m ruff format --check functions tests
	$(PYTHON) -m ruff check functions tests
	$(PYTHON) -m mypy
	$(PYTHON) -m pytest -q tests/repository/test_architecture.py tests/repository/test_imports.py tests/repository/test_repository.py
	$(PYTHON) -m functions.local stamp --check

.PHONY: fmt
fmt: installed-test ## Format the code and fix what the linter can fix
	$(PYTHON) -m ruff check --fix functions tests
	$(PYTHON) -m ruff format functions tests

.PHONY: sql-stamp
sql-stamp: installed-run ## Copy the changed files of sql/ into a new migration: make sql-stamp m="tie-break by id"
	@test -n "$$m" || { echo 'ibid: sql-stamp needs a message that says what changed: make sql-stamp m="tie-break by id"' >&2; exit 2; }
	$(PYTHON) -m functions.local stamp -m "$$m"

.PHONY: lock
lock: ## After changing a pinned version: fetch the hashes of all wheels into functions/local/packaging/wheels.sha256
	@$(find_python); exec "$$python" -m functions.local.packaging.wheels

.PHONY: audit
audit: installed-run ## Compare the pinned packages of Python and Node.js with the databases of known vulnerabilities (needs a network)
	@$(PYTHON) -m functions.local.packaging.audit

.PHONY: artifacts
artifacts: installed-run ## Build the Lambda artifacts (Python 3.12, arm64) in .build/lambda
	@$(PYTHON) -m functions.local.packaging.artifacts

.PHONY: ocr-layer
ocr-layer: installed-run ## Build the Lambda layer that reads scans, with the Tesseract languages installed on this machine
	@$(PYTHON) -m functions.local.packaging.ocr_layer $(ARGS)

.PHONY: package
package: installed-test node_modules/.installed ## Build the artifacts, write the CloudFormation template and check it (needs no AWS account)
	@if $(PYTHON) -m functions.local.packaging.artifacts; then artifacts=.build/lambda; \
	else echo 'ibid: the Lambda artifacts could not be built; building artifacts from this machine'\''s packages to check the template. Lambda cannot run them.' >&2; \
	$(PYTHON) -m functions.local.packaging.artifacts --target host && artifacts=.build/host; fi && \
	umask 077 && IBID_ARTIFACTS=$$artifacts $(OSLS) package
	.venv/bin/cfn-lint -i W3005 -- $(TEMPLATE)

.PHONY: supabase-cli
supabase-cli: ## Install the Supabase CLI in .build (142 MB), which some tests need
	@mkdir -p .build/supabase-cli && SUPABASE_TELEMETRY_DISABLED=1 DO_NOT_TRACK=1 npm install --prefix .build/supabase-cli \
		--no-save --no-audit --no-fund --ignore-scripts --loglevel=error supabase@3.1.0

.PHONY: parameters
parameters: installed-run ## Store the secrets of .env.STAGE in the AWS parameter store: make parameters STAGE=prod (needs the AWS CLI)
	@$(PYTHON) -m functions.local.packaging.deployment parameters $(or $(STAGE),dev) $(if $(REGION),--region $(REGION))

.PHONY: deploy
deploy: artifacts node_modules/.installed ## Deploy to AWS with the settings of .env.STAGE: make deploy STAGE=prod (needs the AWS CLI)
	@$(PYTHON) -m functions.local.packaging.deployment deploy $(or $(STAGE),dev) $(if $(REGION),--region $(REGION))

.PHONY: eval
eval: installed-test ## Measure search and answer quality on the question sets in IBID_EVAL_DATA
	@$(PYTHON) -m tests.eval $(ARGS)

.PHONY: pictures
pictures: installed-test ## Take the pictures of the README anew, with the tests of the page
	@$(PYTHON) -m pytest -q tests/browser/views/test_readme_pictures.py
	@cp .build/pictures/readme/*.png .github/

.PHONY: corpus
corpus: installed-test ## Ingest the awkward files in IBID_CORPUS_DATA and compare each result with the expected one
	@$(PYTHON) -m tests.corpus $(ARGS)

.PHONY: bench
bench: $(patsubst tests/bench/bench_%.py,bench-%,$(wildcard tests/bench/bench_*.py)) ## Run the short form of every benchmark; make bench-NAME runs one

.PHONY: fuzz
fuzz: installed-test ## Read 20,000 mutated PDF and DOCX files (ARGS="--runs 1000"), with those in IBID_CORPUS_DATA among the seeds
	@$(PYTHON) -m tests.fuzz $(ARGS)

.PHONY: faults
faults: installed-test ## Run every flow while the database, the storage, the model or events fail (ARGS="--fault storage"), and print the table
	@$(PYTHON) -m tests.faults $(ARGS)

.PHONY: fuzz-api
fuzz-api: installed-test ## Send 40,000 generated requests to all operations as every kind of caller (ARGS="--examples 5" sends fewer)
	@$(PYTHON) -m tests.fuzz.api $(ARGS)

bench-%: installed-test
	@$(PYTHON) -m tests.bench.bench_$* $(ARGS)

.PHONY: clean
clean: ## Remove everything that the targets above created, but not your data in .ibid
	rm -rf .venv .build .serverless node_modules .hypothesis .pytest_cache .mypy_cache .ruff_cache
	find functions tests -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: installed-run installed-test
installed-run installed-test:
	@$(find_python); exec "$$python" -m functions.local.packaging.install $(subst installed-,,$@)

.PHONY: installed-osls
installed-osls:
	@if command -v npm >/dev/null; then $(MAKE) node_modules/.installed || echo 'ibid: npm could not install the packaging tool and the accessibility rules, so the tests that need them cannot run' >&2; fi

node_modules/.installed: package-lock.json
	@command -v npm >/dev/null || { echo 'ibid: packaging needs npm and Node.js 20.19 or newer; install them first' >&2; exit 1; }
	@echo 'ibid: installing the packaging tool and the accessibility rules into node_modules ...'
	@npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error
	@touch $@
