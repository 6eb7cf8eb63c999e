# Works with GNU make 4.3 and a POSIX sh. `make help` lists the targets.

.DEFAULT_GOAL := help

PYTHON := .venv/bin/python
PYTHONS := python3.14 python3.13 python3.12 python3.11 python3
CDK := PATH="$(CURDIR)/.venv/bin:$$PATH" node_modules/.bin/cdk
ENVIRONMENT := .venv/.installed node_modules/.installed
# The demo needs a third of the packages, and only the CDK CLI of Node's.
DEMO_ENVIRONMENT := .venv/.installed-demo node_modules/.installed-demo

# Folders of unit tests with templates, processes or services; the others are of pure rooms.
SLOW := benchmarks cli demo handlers http_api infra testing writes

LOCK := UV_CUSTOM_COMPILE_COMMAND='make lock' .venv/bin/uv pip compile --quiet --universal --python-version 3.11 \
	--generate-hashes --only-binary :all: --emit-build-options

# File names may hold spaces and quotes: recipes read these from the environment, never as make text.
export EXAMPLE LOG DUPLICATES SEED REPORT KEEP TAG
# Hundreds of processes import the same modules, which pip does not compile: the first one does.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup check rooms demo bench test docs spec soak mutations engines nightly snapshot lint audit wheel release-check lock \
	lambda-asset synth diff deploy aws-smoke clean clean-all

help: ## List the targets
	@echo 'Usage: make TARGET [NAME=VALUE ...]'
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' Makefile

setup: $(ENVIRONMENT) ## Create .venv and node_modules if missing or out of date

demo: ## Deploy to an emulator, send traffic, check every count [EXAMPLE= LOG= DUPLICATES= SEED= REPORT= KEEP=1]
	@$(MAKE) --no-print-directory --silent -j2 $(DEMO_ENVIRONMENT)
	@set --; \
	[ -z "$$EXAMPLE" ] || set -- "$$@" --example "$$EXAMPLE"; \
	[ -z "$$LOG" ] || set -- "$$@" --log "$$LOG"; \
	[ -z "$$DUPLICATES" ] || set -- "$$@" --duplicates "$$DUPLICATES"; \
	[ -z "$$SEED" ] || set -- "$$@" --seed "$$SEED"; \
	[ -z "$$REPORT" ] || set -- "$$@" --report "$$REPORT"; \
	case "$$KEEP" in ''|0|no|false) ;; *) set -- "$$@" --keep ;; esac; \
	exec $(PYTHON) -m demo "$$@"

bench: $(ENVIRONMENT) ## Compare cost and speed with known designs; writes docs/benchmarks.md [REPORT=]
	@set --; \
	[ -z "$$REPORT" ] || set -- "$$@" --report "$$REPORT"; \
	exec $(PYTHON) -m benchmarks "$$@"

check: $(ENVIRONMENT) ## Check style, types and the pure rooms: what to run while you work, in 90 seconds
	@$(MAKE) --no-print-directory -j2 --output-sync=target lint rooms

rooms: $(ENVIRONMENT)
	$(PYTHON) -m pytest -q tests/unit --ignore-glob='tests/unit/test_*.py' $(SLOW:%=--ignore=tests/unit/%) $(ARGS)

test: $(ENVIRONMENT) ## Run all tests [ARGS='-k name']
	@for tool in java mvn; do \
		command -v $$tool >/dev/null || echo "note: no $$tool on the PATH: tests on DynamoDB Local need JDK 17+ and Maven"; \
	done
	@[ -e tests/__pycache__ ] || { \
		echo 'Compiling the tests, once for all processes'; $(PYTHON) -m pytest --collect-only -q >/dev/null || true; }
	@exec $(PYTHON) -m pytest $(or $(ARGS),-n 3)

docs: $(ENVIRONMENT) ## Build the documentation as a site into build/site, strictly and offline
	$(PYTHON) -m sphinx -q -a -W --keep-going docs build/site
	@echo 'Built build/site/index.html'

soak: $(ENVIRONMENT) ## Run fault schedules for some minutes [MINUTES=30]
	$(PYTHON) -m simulation.pairs --swarm --processes 2 --minutes $(or $(MINUTES),30) $(ARGS)

mutations: $(ENVIRONMENT) ## Switch off each safety mechanism in turn and check that a test fails
	$(PYTHON) -m simulation.mutations $(ARGS)

spec: $(ENVIRONMENT) ## Check the specification and the handler against it; prints the tables of docs/spec/README.md [ARGS='--traces 100']
	$(PYTHON) -m simulation.specification $(ARGS)

engines: $(ENVIRONMENT) ## Run the store tests and the benchmarks on every engine
	ENGINES=all $(PYTHON) -m pytest tests/integration tests/unit/benchmarks $(ARGS)

nightly: $(ENVIRONMENT) .venv/.installed-nightly ## Run what a day has no time for, then say in a table what was wrong [PARTS='mutations spec' MINUTES=30]
	$(PYTHON) -m simulation.nightly --minutes $(or $(MINUTES),30) --parts $(PARTS)

snapshot: $(ENVIRONMENT) ## Rewrite the snapshots of synthesized templates
	@NIGHT=1 UPDATE_SNAPSHOTS=1 $(PYTHON) -m pytest -m snapshot $(ARGS)

lint: $(ENVIRONMENT) ## Check style and types
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy

audit: $(ENVIRONMENT) ## Ask for known vulnerabilities of all that is locked
	for lock in requirements.txt requirements-nightly.txt requirements-release.txt; do \
		.venv/bin/uvx pip-audit==2.10.1 --requirement $$lock --require-hashes --disable-pip || exit 1; \
	done
	npm audit

wheel: .venv/.installed ## Build the wheels of library and constructs, with their bills of materials, into dist
	for folder in lambdas infra; do $(PYTHON) -m build --wheel --no-isolation --outdir dist $$folder || exit 1; done

release-check: $(ENVIRONMENT) ## Build the wheels of the last commit into dist, check and use them [TAG=v0.1.0]
	@set --; \
	[ -z "$$TAG" ] || set -- "$$TAG"; \
	exec $(PYTHON) -m scripts.release_check "$$@"

lock: $(ENVIRONMENT) ## Write the locks requirements*.txt from their .in [ARGS='--upgrade']
	$(LOCK) $(ARGS) -o requirements.txt requirements.in
	$(LOCK) $(ARGS) -c requirements.txt -o requirements-nightly.txt requirements-nightly.in
	$(LOCK) $(ARGS) -c requirements.txt -o requirements-release.txt requirements-release.in

lambda-asset: $(ENVIRONMENT) ## Write docs/lambda-asset.md: what goes into the Lambda asset, with licences
	$(PYTHON) -m scripts.lambda_asset

synth: $(ENVIRONMENT) ## Synthesize the example app into cdk.out
	$(CDK) synth --quiet $(ARGS)

diff: $(ENVIRONMENT) ## Compare the example app with its deployment in your AWS account
	$(CDK) diff $(ARGS)

deploy: $(ENVIRONMENT) ## Deploy the example app to your AWS account
	$(CDK) deploy --all $(ARGS)

aws-smoke: $(ENVIRONMENT) ## Deploy a copy to your AWS account, check it there, remove it; asks first [ARGS='--yes']
	$(PYTHON) -m demo.aws_smoke $(ARGS)

clean: ## Remove what tests and builds left behind
	rm -rf cdk.out dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find app.py benchmarks demo infra lambdas simulation tests -name __pycache__ -type d -prune -exec rm -rf {} +

clean-all: clean ## Remove the environment too
	rm -rf .venv node_modules .cache

# Install the lock $(1), with a dot per package, and what went wrong. uv takes seconds where pip takes a minute; pip, of
# .venv where the Python that .venv comes from has none that can install into it, installs uv, and all else where uv
# fails. aws-cdk-lib comes last: one of its dependencies brings aws_cdk/cloud_assembly_schema, too, and the copy of the
# library is the one that works.
define INSTALL
	printf 'Installing Python packages '; \
	rm -f .venv/.complete; \
	base=$$($(PYTHON) -c 'import sys; print(sys._base_executable)'); \
	pip() { if [ -e .venv/bin/pip ]; then $(PYTHON) -m pip "$$@"; else "$$base" -m pip --python $(PYTHON) "$$@"; fi; }; \
	pip_install() { pip install --disable-pip-version-check --no-input --no-compile --require-hashes -r "$$1"; }; \
	index=$${UV_DEFAULT_INDEX:-$${PIP_INDEX_URL:-$$(pip config get global.index-url 2>/dev/null || true)}}; \
	uv_install() { \
		UV_SYSTEM_CERTS=1 $${index:+env UV_DEFAULT_INDEX="$$index"} .venv/bin/uv pip install --python $(PYTHON) \
			--no-progress --no-build --require-hashes "$$@"; }; \
	with_uv() { \
		if [ ! -e .venv/bin/uv ]; then $(PYTHON) scripts/part_of_lock.py uv > .venv/uv.txt && pip_install .venv/uv.txt; fi && \
		uv_install -r "$$1" && uv_install -r "$$1" --no-deps --reinstall-package aws-cdk-lib; }; \
	{ if with_uv $(1) 2>&1 || pip_install $(1) 2>&1; then touch .venv/.complete; fi; } \
		| tee .venv/install.log | awk '/^ *(\+ |Collecting|Downloading|Installing)/ {printf "."; fflush()} END {print ""}'; \
	if [ ! -e .venv/.complete ]; then \
		tail -n 20 .venv/install.log >&2; \
		echo 'error: pip failed, see .venv/install.log' >&2; \
		exit 1; \
	fi
endef

# $(1) says which packages.
define INSTALL_NODE
	@major=$$(node -p 'process.versions.node.split(".")[0]' 2>/dev/null) || major=0; \
	if [ "$$major" -lt 20 ]; then \
		echo "error: needs Node 20 or newer with npm (found: $$(node --version 2>/dev/null || echo none))" >&2; \
		exit 1; \
	fi
	@echo 'Installing $(2)'
	@npm ci --no-audit --no-fund --loglevel=error $(1)
endef

# A command that exists may still not run (version managers' shims), and Debian's may lack venv: try each.
.venv/.installed-demo: requirements.txt lambdas/pyproject.toml infra/pyproject.toml scripts/part_of_lock.py
	@set -e; \
	usable='import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))'; \
	if ! .venv/bin/python -c "$$usable" 2>/dev/null; then \
		for python in $(PYTHONS); do \
			if $$python -c "$$usable" 2>/dev/null; then break; fi; \
			python=; \
		done; \
		if [ -z "$$python" ]; then \
			echo 'error: needs Python 3.11 or newer with venv (tried: $(PYTHONS)); on Debian: apt install python3-venv' >&2; \
			exit 1; \
		fi; \
		echo "Creating .venv with $$($$python --version)"; \
		without=; \
		! $$python -m pip --python "$$(command -v $$python)" --version >/dev/null 2>&1 || without=--without-pip; \
		$$python -m venv --clear $$without .venv; \
	fi; \
	$(PYTHON) scripts/part_of_lock.py > .venv/requirements-demo.txt; \
	$(call INSTALL,.venv/requirements-demo.txt)
	@touch $@

.venv/.installed: .venv/.installed-demo requirements.txt
	@$(call INSTALL,requirements.txt)
	@touch $@

.venv/.installed-nightly: .venv/.installed requirements-nightly.txt
	@$(call INSTALL,requirements-nightly.txt)
	@touch $@

node_modules/.installed-demo: package.json package-lock.json
	$(call INSTALL_NODE,--omit=dev,the CDK CLI)
	@touch $@

# `npm ci` begins by removing all.
node_modules/.installed: package.json package-lock.json
	$(call INSTALL_NODE,,the packages of Node)
	@touch node_modules/.installed-demo $@
