# `make` alone lists every command. Needs Python 3.11 or newer and nothing else; everything is
# installed into .venv, and PYTHON=… chooses the Python that makes it.

PYTHON ?= $(shell for one in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$one -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$one && break; \
	done)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.kemem-installed
GUIDE := app/integrations/guide/site/index.html
TOOLS := build/pip-tools
COMPILE := $(TOOLS)/bin/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras \
	--all-build-deps --no-header --no-emit-options --no-emit-index-url --no-emit-find-links \
	--no-emit-trusted-host

args ?=
LOCOMO ?= ../shared/data/locomo/locomo10.json
MADIAL ?= ../shared/data/madial

.DEFAULT_GOAL := help
.PHONY: help install run demo unit test test-slow check format client typescript dashboard screenshots guide migrate migration bench soak constraints \
	wheel clean

help: ## List these commands.
	@echo "KeMem. Add args=\"…\" to hand options on, for example: make run args=\"--port 8001\""
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

install: $(READY) ## Make .venv and install everything into it; other commands do it by themselves.

$(READY): requirements-dev.txt pyproject.toml
	@if [ -z "$(PYTHON)" ]; then \
		echo "KeMem needs Python 3.11 or newer, and found none: install it, or say where it is" \
			"with PYTHON=/path/to/python."; exit 1; fi
	@if [ ! -x $(BIN)/python ]; then \
		echo "Making the virtual environment $(VENV) with $(PYTHON) …"; \
		"$(PYTHON)" -m venv $(VENV); fi
	@echo "Installing what requirements-dev.txt lists, checked by hash; this takes one to five minutes …"
	@{ $(BIN)/python -m pip install --progress-bar off --disable-pip-version-check \
		--require-hashes -r requirements-dev.txt 2>&1; echo "pip ended with $$?"; } | \
		awk -v all=$$(grep -c == requirements-dev.txt) \
		'/^pip ended with [0-9]+$$/ {code = $$NF; next} {line[NR % 20] = $$0} \
		/^(Collecting|Requirement already)/ {n++} \
		/^Collecting/ {printf "\r  %d of %d packages …", n, all; fflush()} \
		/^Installing collected/ {printf "\n  All are here; they are being installed …\n"; fflush()} \
		END {if (code) {print ""; for (at = NR > 20 ? NR - 19 : 1; at < NR; at++) print line[at % 20]}; exit code}'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps \
		--no-build-isolation --editable .
	@$(BIN)/python scripts/install_local_model.py
	@touch $(READY)
	@echo "Installed."

$(GUIDE): $(READY) zensical.toml .env.example $(wildcard *.md docs/*.md docs/*/*.md scripts/*guide*.py)
	@$(BIN)/python scripts/build_guide.py || echo "/guide stays as it was; everything else works."

run: $(READY) $(GUIDE) ## Run the service with a PostgreSQL of its own; prints address, key and a first request.
	@$(BIN)/kemem serve $(args)

demo: $(READY) ## Play a conversation through the running service and print what it stored and found.
	@$(BIN)/kemem demo $(args)

unit: $(READY) ## Run the tests that need no database: the quickest answer while you work.
	@$(BIN)/pytest -q -n 2 --dist worksteal -m "not slow" $(if $(args),$(args),tests/unit)

test: $(READY) ## Run all tests but the slow ones, on a PostgreSQL of their own.
	@$(BIN)/pytest -n 2 --dist loadfile -m "not slow" $(args)

test-slow: $(READY) ## Run the slow tests, storms and soaks, and property tests with many examples.
	@$(BIN)/pytest -n 2 --dist loadfile -m "slow or hypothesis" --hypothesis-profile thorough $(args)

check: $(READY) ## Look for faults without running: lint, format, types. Changes nothing.
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: $(READY) ## Put the code into its form and mend what can be mended.
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

client: $(READY) ## Generate the sync client, kemem/_sync, from the async one, kemem/_async.
	@$(BIN)/python scripts/generate_client.py

typescript: $(READY) ## Generate the types of clients/typescript from the OpenAPI document; needs Node.js.
	@cd clients/typescript && npm ci --silent
	@PYTHONPATH=. $(BIN)/python scripts/generate_typescript.py

dashboard: ## Build the dashboard from dashboard/ into app/integrations/dashboard/assets; needs Node.js.
	@cd dashboard && npm ci --silent && npm run --silent build

screenshots: $(READY) ## Take the screenshots of docs/ anew, of what the demo leaves; needs a Chromium.
	@$(BIN)/python -m scripts.take_screenshots

guide: $(READY) ## Build the manual that the service shows at /guide; it fails on a broken link.
	@$(BIN)/python scripts/build_guide.py

migrate: $(READY) ## Bring the database schema to this release.
	@$(BIN)/kemem migrate $(args)

migration: $(READY) ## Draft a migration from the changed tables: make migration name="let memories expire".
	@if [ -z "$(name)" ]; then \
		echo 'Say what it does: make migration name="let memories expire"'; exit 1; fi
	@$(BIN)/kemem draft-migration "$(name)"

bench: $(READY) ## Measure everything beside references in the same run; args="--quick" measures less.
	@$(BIN)/python -m benchmarks.products $(args)
	@$(BIN)/python -m benchmarks.search $(args)
	@$(BIN)/python -m benchmarks.save $(args)
	@$(BIN)/python -m benchmarks.append $(args)
	@$(BIN)/python -m benchmarks.queue $(args)
	@$(BIN)/python -m benchmarks.quantisation $(args)
	@$(BIN)/python -m benchmarks.context
	@$(BIN)/python -m benchmarks.checkpoints
	@$(BIN)/python -m benchmarks.graph $(args)
	@$(BIN)/python -m benchmarks.profiles $(args)
	@$(BIN)/python -m benchmarks.ingest
	@$(BIN)/python -m benchmarks.export $(args)
	@$(BIN)/python -m benchmarks.lexical $(if $(wildcard $(LOCOMO)),--locomo "$(LOCOMO)") $(args)
	@if [ -f "$(LOCOMO)" ] && [ -d "$(MADIAL)" ]; then \
		$(BIN)/python -m benchmarks.recall --locomo "$(LOCOMO)" --madial "$(MADIAL)" $(args); \
		else echo "Left out: what is found; give the data sets with LOCOMO=/path/to/locomo10.json" \
			"and MADIAL=/path/to/folder/of/madial_en.json."; fi
	@if [ -f "$(LOCOMO)" ]; then \
		$(BIN)/python -m benchmarks.graph_recall --locomo "$(LOCOMO)" $(args); \
		else echo "Left out: what the graph finds; give the data set with LOCOMO=/path/to/locomo10.json."; fi
	@if [ -f "$(LOCOMO)" ]; then $(BIN)/python -m benchmarks.context_tokens --locomo "$(LOCOMO)"; \
		else echo "Left out: what a context saves; give the data set with LOCOMO=/path/to/locomo10.json."; fi
	@$(BIN)/python -m benchmarks.extraction_quality $(if $(DATA),--data "$(DATA)")
	@if [ -n "$(DATA)" ]; then $(BIN)/python -m benchmarks.model_calls --data "$(DATA)"; \
		else echo "Left out: what a model is asked; give the data sets with DATA=/path/to/data."; fi
	@if [ -f "$(LOCOMO)" ]; then $(BIN)/python -m benchmarks.extraction_cost "$(LOCOMO)"; \
		else echo "Left out: what extraction costs; give the data set with LOCOMO=/path/to/locomo10.json."; fi

soak: $(READY) ## Half an hour of mixed load on a hundred tenants; args="--minutes 2" for less.
	@$(BIN)/python -m benchmarks.soak $(args)

constraints: ## Compile the requirements files anew: names, versions and hashes, no address.
	@[ -x $(TOOLS)/bin/pip-compile ] || { "$(PYTHON)" -m venv $(TOOLS) && \
		$(TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check pip-tools; }
	@echo "Resolving; this takes some minutes …"
	@$(COMPILE) --output-file requirements.txt pyproject.toml
	@$(COMPILE) --extra dev --output-file requirements-dev.txt pyproject.toml
	@grep -o 'zensical==[0-9.]*' pyproject.toml | $(filter-out --all-build-deps,$(COMPILE)) --output-file requirements-guide.txt -

wheel: $(READY) ## Build the client alone into dist/, for: pip install dist/kemem_client-*.whl
	@rm -rf client/build client/*.egg-info
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps \
		--no-build-isolation --wheel-dir dist ./client
	@rm -rf client/build client/*.egg-info
	@ls dist/kemem_client-*.whl

clean: ## Remove .venv, caches and build folders; your data stays.
	@rm -rf $(VENV) build dist *.egg-info client/build client/*.egg-info clients/typescript/build clients/typescript/dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .schemathesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
	@echo "Removed. Data folders are left alone."
