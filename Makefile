# Everything is installed into folders of this project: .tools (uv), .venv (ours) and .venv-studio (Label Studio,
# whose dependencies conflict with ours). Nothing but Python, pip and make has to be there before.

PYTHON ?= python3
STUDIO := 1.23.2

UV := .tools/bin/uv
RUN := .venv/bin/python
OURS := .venv/.installed
STUDIOS := .venv-studio/.installed-$(STUDIO)
TEMPLATE := .cache/label-studio/$(STUDIO)/label_studio.sqlite3

# uv takes the Python that is here and does not read pip's settings: hand it the index, if one is set there.
export UV_PYTHON_DOWNLOADS := never
ifdef PIP_INDEX_URL
export UV_DEFAULT_INDEX ?= $(PIP_INDEX_URL)
endif
unexport VIRTUAL_ENV
# Without its compiled files, every process would compile torch and Django anew, for seconds.
unexport PYTHONDONTWRITEBYTECODE
MAKEFLAGS += --no-print-directory

.DEFAULT_GOAL := help
.PHONY: help demo test test-fast browser screenshots lint setup clean bench bench-speed bench-coverage bench-loop-coverage bench-models bench-labels bench-helped bench-loop bench-subsets bench-workers bench-exports load faults

help:
	@echo "make demo        Label Studio, backend, worker and a project of real images, connected; Ctrl-C stops it all"
	@echo "                 ANNOTATOR=auto  a script labels from the true labels; ends after ROUNDS=5 rounds"
	@echo "                 DATA=folder     your own images: a folder per class, or a flat one with CLASSES=a,b,c"
	@echo "                 K=50            labels per round        DEMO=.demo  where it keeps everything"
	@echo "                 NETWORK=resnet18  what is trained (iwes doctor lists what there is)"
	@echo "make test        lint and all tests, those with a real Label Studio and a real browser included"
	@echo "make test-fast   the tests that need no Label Studio and take no more than seconds"
	@echo "make faults      1,000 labels while everything is killed 48 times and webhooks are lost; half an hour"
	@echo "                 LABELS=1000 KILLS=48 K=50 SEED=1"
	@echo "make browser     a Chromium for the tests in a browser, where there is none (make test does it by itself)"
	@echo "make screenshots the pictures in docs/screenshots, taken by the tests in a browser"
	@echo "make lint        ruff, mypy and the import contract"
	@echo "make bench           bench-labels, bench-speed and bench-loop, one after the other: all of docs/benchmarks.md; hours"
	@echo "make bench-speed     selection next to modAL, Baal, scikit-activeml, small-text, cleanlab (FULL=1: all picks; FRESH=1 PAGE=1)"
	@echo "make bench-coverage  how often the intervals hold what they promise"
	@echo "make bench-loop-coverage  the same for the estimates of the whole loop on digits (RUNS=200 K=50 NOISE=0 JSON=file)"
	@echo "make bench-models    scoring, training, calibration and memory (PHOTOS=folder CIFAR=file.npz ONLY=part)"
	@echo "make bench-labels    labels needed by 24 rules on five kinds of pools; hours, goes on where it was"
	@echo "                     (DATA='mnist-5000 fashion-mnist=folder' POOL=clean RULE='random margin' SEEDS=20 PAGE=1)"
	@echo "make bench-helped    what the model's help with estimates is worth, and whether intervals hold (DATA=… POOL=… SEEDS=2)"
	@echo "make bench-subsets   training on selected subsets of Fashion-MNIST; an hour of processor time (FASHION=folder)"
	@echo "make bench-loop      from the k-th label to the next batch, and annotators beside a training; 15 minutes"
	@echo "                     (ROUNDS=5 K=50 LABELS=500 ANNOTATORS=8 QUICK=1 PAGE=1 JSON=file)"
	@echo "make bench-workers   a selection by two models with one worker and with two"
	@echo "make bench-exports   a million rows out of the store, to files and over HTTP (ROWS=1000000 REPEATS=1 JSON=file)"
	@echo "make load            webhooks from 64 senders while a training runs; ten minutes (SECONDS=15 JSON=file QUICK=1"
	@echo "                     DATABASE=postgresql+psycopg://… for an empty PostgreSQL instead of SQLite)"
	@echo "make setup       install everything (the other commands do it by themselves)"
	@echo "make clean       remove what was installed; demos are kept"

demo: setup
	@exec $(RUN) -m backend.demo \
	  $(if $(ANNOTATOR),--annotator '$(ANNOTATOR)') $(if $(ROUNDS),--rounds '$(ROUNDS)') $(if $(K),--k '$(K)') \
	  $(if $(NETWORK),--network '$(NETWORK)') \
	  $(if $(DATA),--data '$(DATA)') $(if $(CLASSES),--classes '$(CLASSES)') $(if $(DEMO),--home '$(DEMO)')

# The quick tests first, side by side; the others need the machine, and its time, for themselves.
test: setup browser lint test-fast
	@exec $(RUN) -m pytest -m "studio or slow"

test-fast: $(OURS)
	@OMP_NUM_THREADS=1 exec $(RUN) -m pytest -m "not studio and not slow" -n 2 --dist loadfile

# Debian's, where we may install it. Without one, the tests that need it are skipped; where CI is set, they fail.
browser:
	@for name in chromium chromium-browser google-chrome; do if command -v $$name >/dev/null; then exit 0; fi; done; \
	if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	  echo "Installing Chromium for the tests in a browser"; \
	  export DEBIAN_FRONTEND=noninteractive; \
	  apt-get update -qq; apt-get install -y -qq --no-install-recommends chromium >/dev/null && exit 0; \
	fi; \
	echo "No Chromium here, so the tests in a browser will be skipped: apt-get install chromium, or put one on the PATH"

screenshots: setup browser
	@mkdir -p docs/screenshots
	@IWES_SCREENSHOTS=docs/screenshots exec $(RUN) -m pytest tests/loop/test_live_loop.py tests/loop/test_in_a_browser.py

faults: setup
	@exec $(RUN) -m tests.faults $(if $(LABELS),--labels '$(LABELS)') $(if $(KILLS),--kills '$(KILLS)') \
	  $(if $(K),--k '$(K)') $(if $(SEED),--seed '$(SEED)')

lint: $(OURS)
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy
	@.venv/bin/lint-imports

# One after the other, also with -j: each needs the machine for itself.
bench:
	@$(MAKE) bench-labels
	@$(MAKE) bench-speed
	@$(MAKE) bench-loop

bench-speed: $(OURS)
	@$(UV) pip install --quiet --python .venv --override overrides.txt -e '.[bench]'
	@PATH="$(CURDIR)/.tools/bin:$$PATH" $(RUN) -m benchmarks.speed $(if $(FULL),--full) $(if $(FRESH),--fresh) \
	  $(if $(PAGE),--page-only)

bench-coverage: $(OURS)
	@$(RUN) benchmarks/coverage.py

bench-loop-coverage: $(OURS)
	@OMP_NUM_THREADS=1 $(RUN) -m benchmarks.loop_coverage $(if $(RUNS),--runs '$(RUNS)') $(if $(K),--k '$(K)') \
	  $(if $(NOISE),--noise '$(NOISE)') $(if $(JSON),--json '$(JSON)')

bench-models: $(OURS)
	@$(RUN) -m benchmarks.learning $(if $(ONLY),--only '$(ONLY)') $(if $(PHOTOS),--photos '$(PHOTOS)') \
	  $(if $(CIFAR),--cifar '$(CIFAR)') $(if $(SCRATCH),--scratch '$(SCRATCH)') $(if $(JSON),--json '$(JSON)')

bench-subsets: $(OURS)
	@$(UV) pip install --quiet --python .venv --override overrides.txt -e '.[bench]'
	@$(RUN) -m benchmarks.subsets $(if $(FASHION),--fashion '$(FASHION)') $(if $(SEEDS),--seeds '$(SEEDS)') \
	  $(if $(WORKERS),--workers '$(WORKERS)') $(if $(JSON),--json '$(JSON)') $(if $(PAGE),--page-only)

bench-labels: $(OURS)
	@$(UV) pip install --quiet --python .venv --override overrides.txt -e '.[bench,lite,demo]'
	@OMP_NUM_THREADS=1 $(RUN) -m benchmarks.labels $(foreach one,$(DATA),--data '$(one)') $(foreach one,$(POOL),--pool '$(one)') \
	  $(foreach one,$(RULE),--rule '$(one)') $(if $(SEEDS),--seeds '$(SEEDS)') $(if $(WORKERS),--workers '$(WORKERS)') \
	  $(if $(PAGE),--page-only)

bench-helped: $(OURS)
	@$(UV) pip install --quiet --python .venv --override overrides.txt -e '.[bench,lite,demo]'
	@OMP_NUM_THREADS=1 $(RUN) -m benchmarks.labels.helped $(foreach one,$(DATA),--data '$(one)') \
	  $(foreach one,$(POOL),--pool '$(one)') --seeds $(if $(SEEDS),'$(SEEDS)',2)

bench-loop: setup
	@$(UV) pip install --quiet --python .venv --override overrides.txt -e '.[bench]'
	@exec $(RUN) -m benchmarks.loop $(if $(ROUNDS),--rounds '$(ROUNDS)') $(if $(K),--k '$(K)') \
	  $(if $(LABELS),--labels '$(LABELS)') $(if $(ANNOTATORS),--annotators '$(ANNOTATORS)') \
	  $(if $(QUICK),--quick) $(if $(PAGE),--page-only) $(if $(JSON),--json '$(JSON)')

bench-workers: $(OURS)
	@$(RUN) -m benchmarks.two_workers

bench-exports: $(OURS)
	@$(RUN) -m benchmarks.exports $(if $(ROWS),--rows '$(ROWS)') $(if $(REPEATS),--repeats '$(REPEATS)') \
	  $(if $(JSON),--json '$(JSON)')

load: $(OURS)
	@exec $(RUN) -m benchmarks.load $(if $(QUICK),--quick) $(if $(SECONDS),--seconds '$(SECONDS)') \
	  $(if $(JSON),--json '$(JSON)') $(if $(WAIT),--wait '$(WAIT)') $(if $(SWEEP),--sweep) \
	  $(if $(DATABASE),--database '$(DATABASE)')

# The two environments are installed side by side, and Label Studio's database is migrated while torch installs.
setup: $(UV)
	@$(MAKE) -s -j3 $(OURS) $(STUDIOS) $(TEMPLATE)

$(UV):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Python 3.11 or newer is needed: apt-get install python3 python3-pip, or name one with PYTHON=python3.x" >&2; exit 1; }
	@$(PYTHON) -m pip --version >/dev/null 2>&1 || { \
	  echo "pip is needed for $(PYTHON): apt-get install python3-pip" >&2; exit 1; }
	@echo "Installing uv"
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --root-user-action ignore --target .tools uv

$(OURS): setup.cfg overrides.txt | $(UV)
	@echo "Installing the backend with torch into .venv"
	@$(UV) venv --quiet --allow-existing --python $(PYTHON) .venv
	@$(UV) pip install --quiet --python .venv --override overrides.txt -e '.[embedded,demo,lite,postgres,test]'
	@touch $@
	@echo "Installed .venv"

$(STUDIOS): | $(UV)
	@echo "Installing Label Studio $(STUDIO) into .venv-studio"
	@$(UV) venv --quiet --allow-existing --python $(PYTHON) .venv-studio
	@$(UV) pip install --quiet --python .venv-studio label-studio==$(STUDIO)
	@touch $@
	@echo "Installed .venv-studio"

$(TEMPLATE): | $(STUDIOS)
	@echo "Making Label Studio's database (once; about 40 s)"
	@$(PYTHON) -m backend.embedded.studio_template .venv-studio/bin/label-studio .cache/label-studio
	@echo "Made Label Studio's database"

clean:
	rm -rf .tools .venv .venv-studio .cache .pytest_cache .mypy_cache .ruff_cache .import_linter_cache *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	@if [ -e .demo ]; then echo "Kept .demo, which holds a demo's labels: rm -r .demo removes it"; fi
