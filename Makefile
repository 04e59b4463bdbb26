# Every way to use this repository, one target each. `make` alone lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
.PHONY: help venv system bubblewrap chromium libatomic postgresql grade learn test site build prove release clean

PYTHON ?= python3
CHAPTER ?= ch01_formats
# For instance https://download.pytorch.org/whl/cpu: where to take torch alone from.
TORCH_INDEX ?=

# nbgrader calls bare `alembic`, Jupyter calls bare `jupyter-*`: the venv's must be found first.
export PATH := $(CURDIR)/.venv/bin:$(PATH)
# Some machines set this. Tests begin a thousand processes, each of which would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE
# mkdocs-material prints a notice about its future on every build, as if something were wrong.
export NO_MKDOCS_2_WARNING := 1

# Say what begins, and note when; `spent` says at the end where the time went. A comma would cut the name.
step = $(if $(2),$(error a step's name has a comma: $(1),$(2)))@printf '\n\033[1m── %s\033[0m\n' $(1); mkdir -p build; echo "$$(date +%s)" $(1) >> build/steps
spent = @printf '\n\033[1m── %s\033[0m\n' 'Where the time went'; date +%s >> build/steps; \
	awk 'NR > 1 { printf "%5d s  %s\n", $$1 - since, name } \
	     { since = $$1; $$1 = ""; name = $$0 }' build/steps
$(shell rm -f build/steps)

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo '  CHAPTER=ch01_formats             which chapter make grade takes'
	@echo '  PYTHON=python3.12                which Python .venv is made from, 3.11 or later'
	@echo '  TORCH_INDEX=https://download.pytorch.org/whl/cpu   smaller torch on Linux'

# ── What the rest stands on ──────────────────────────────────────────────────

venv: .venv/.ready ## Install Undertorch and all it needs into .venv

.venv/.ready: pyproject.toml constraints.txt
	$(call step,'Installing into .venv (the first time takes minutes; log in .venv/pip.log)')
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo 'Python 3.11 or later is needed. Name one: make venv PYTHON=python3.12'; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
	  || { echo 'This Python cannot make a venv. On Debian: apt-get install python3-venv'; exit 1; }
	@$(PYTHON) -m venv .venv
	@: > .venv/pip.log
	@if [ -n '$(TORCH_INDEX)' ]; then \
	  python -m pip install --no-deps -c constraints.txt torch --index-url '$(TORCH_INDEX)' \
	    >> .venv/pip.log 2>&1 || { cat .venv/pip.log; exit 1; }; fi
	@python -m pip install --no-compile -c constraints.txt -e '.[dev,scale,watch,promises]' >> .venv/pip.log 2>&1 \
	  || { cat .venv/pip.log; exit 1; }
	@# pip would compile one file after the other. Some packages hold templates that are no Python.
	@python -m compileall -qq -j 0 .venv/lib >> .venv/pip.log 2>&1 || true
	@touch $@

# Who may not install reads at once all that is missing: hence -k.
system: ## Install bubblewrap, Chromium, libatomic, PostgreSQL where missing (Debian, as root)
	@$(MAKE) -k bubblewrap chromium libatomic postgresql

# $(call install,commands or files any of which will do,Debian package,what it is for)
define install
	@for name in $(1); do if command -v "$$name" >/dev/null || [ -e "$$name" ]; then exit 0; fi; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  printf '\n\033[1m── %s\033[0m\n' 'Installing $(2), which $(3)'; \
	  mkdir -p build; \
	  { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $(2); } \
	    > build/apt.log 2>&1 < /dev/null || { cat build/apt.log; exit 1; }; \
	else \
	  echo '$(2) is missing: it $(3). Run this, then make again:'; \
	  echo '    sudo apt-get update && sudo apt-get install -y $(2)'; \
	  exit 1; \
	fi
endef

bubblewrap:
	$(call install,bwrap,bubblewrap,boxes code that is not yours)

chromium:
	$(call install,chromium-headless-shell chromium chromium-browser google-chrome,chromium-headless-shell,shows the site to its tests)

libatomic:
	$(call install,$(wildcard /usr/lib*/libatomic.so.1 /usr/lib/*/libatomic.so.1),libatomic1,lets Playwright drive Chromium)

# Debian keeps the server's programs off the path, and starts a server when it installs them unless told
# not to. The tests start their own, in a temporary folder.
PG_TOOLS := initdb $(wildcard /usr/lib/postgresql/*/bin/initdb)
PG_NO_SERVER := /etc/postgresql-common/createcluster.d/no-server.conf

postgresql:
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && [ ! -e /etc/postgresql-common ]; then \
	  mkdir -p $(dir $(PG_NO_SERVER)) && echo 'create_main_cluster = false' > $(PG_NO_SERVER); \
	fi
	$(call install,$(PG_TOOLS),postgresql,keeps the gradebook of large classes and of its tests)

# ── Using it ─────────────────────────────────────────────────────────────────

# Every submission has a row, a broken one too ("needs review"), so autograde has no reason to fail.
# If it does, the rest of the class still gets its feedback and scores, and make fails at the end.
grade: .venv/.ready bubblewrap ## Grade the sample class with nbgrader's own commands
	$(call step,'Filling submitted/ with the sample class')
	@undertorch sample $(CHAPTER)
	$(call step,'Grading $(CHAPTER)')
	@failed=0; \
	nbgrader autograde $(CHAPTER) --student='sample-*' --force || failed=$$?; \
	nbgrader generate_feedback $(CHAPTER) --student='sample-*' --force || failed=$$?; \
	undertorch scores $(CHAPTER) || failed=$$?; \
	if [ "$$failed" != 0 ]; then \
	  echo 'A grading step failed; its message is above. Scores shown are those that were written.'; \
	  exit "$$failed"; \
	fi

learn: .venv/.ready ## Open the chapters in JupyterLab, in your own copy under my/
	@undertorch learn

# Not --quiet, here and in test: it hides the warnings from --strict, which then passes dead links.
site: .venv/.ready ## Build the site into build/site
	$(call step,'Building the site')
	@mkdocs build --strict
	@echo 'build/site/index.html'

build: .venv/.ready ## Build notebooks and site pages from solutions/*/*.pct.py
	$(call step,'Building the chapters')
	@undertorch build

# ── Proving it ───────────────────────────────────────────────────────────────

# Three workers keep two cores busy: a browser and a box are waited for. Tests of a file stay on one
# (tests/conftest.py). pytest's 5 means that no test carries the marker.
TOGETHER := pytest -q -p no:nbval -n 3 --dist loadgroup --no-loadscope-reorder -m 'not alone'
ALONE := pytest -q -p no:nbval -m alone

test: .venv/.ready system ## Check what may have changed: ten minutes on two cores, half an hour after a change to all
	$(call step,'ruff')
	@ruff check --quiet . && ruff format --check --quiet .
	$(call step,'Tests of Undertorch (beside them types and whether notebooks and pages are those of their sources)')
	@{ { mypy && undertorch build --check --no-run; } > build/check.log 2>&1 || { cat build/check.log; exit 1; }; } & check=$$!; \
	tests=0; $(TOGETHER) || tests=$$?; \
	wait $$check && exit $$tests
	$(call step,'Tests that want the machine for themselves')
	@$(ALONE) || [ $$? = 5 ]
	$(spent)

prove: .venv/.ready system ## Prove every grader anew, run every notebook and every tried answer: more than an hour on two cores
	$(call step,'Every known answer and every mutant and every notebook')
	@undertorch prove
	$(call step,'What explorers compute and pages show and notebooks and commands do')
	@$(TOGETHER) --prove-all
	@$(ALONE) --prove-all
	$(call step,'What becomes of answers that somebody tried')
	@undertorch tried --jobs 2 --require right=1,wrong=0.995,cheat=0.97,explained=0.85,silent=0
	$(spent)

release: .venv/.ready ## Build the wheel into build/dist, if every proof is of today
	$(call step,'Is every proof of today?')
	@undertorch prove --check
	$(call step,'Building the wheel')
	@python -m pip wheel --quiet --no-deps --wheel-dir build/dist .
	@ls build/dist

clean: ## Remove what was built and cached; submissions, grades, my/ and .venv stay
	@rm -rf build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -name .venv -prune -o -name __pycache__ -type d -exec rm -rf {} +
