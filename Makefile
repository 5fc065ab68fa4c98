# Two commands for a fresh clone: `make run` and `make test`.

CARGO ?= cargo
OUT   ?= fullpipe-out/tour
HISTORIES ?= 1000000
FUZZ_SECONDS ?= 60

VERIFY = verify-attacks verify-histories verify-search verify-scenarios verify-mutants \
	verify-tuner verify-wheel

.DEFAULT_GOAL := help
.PHONY: help run test wheel packages verify $(VERIFY) fuzz bench bench-udp lint calibrate web site

help: ## List the targets
	@echo 'usage: make TARGET'
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo 'variables: CARGO=$(CARGO) OUT=$(OUT) HISTORIES=$(HISTORIES) FUZZ_SECONDS=$(FUZZ_SECONDS)'

run: ## Build quickly, run a tour of the built-in scenarios, write its report
	@command -v $(CARGO) >/dev/null || { echo 'make: cargo is missing; install Rust 1.95 or later: https://rustup.rs' >&2; exit 3; }
	$(CARGO) build --profile quick --locked --package fullpipe
	@if [ '$(OUT)' = fullpipe-out/tour ]; then rm -rf fullpipe-out/tour; fi
	@bin=$$($(CARGO) metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/quick/fullpipe; \
	echo; echo "\$$ $$bin run tour --quick --out $(OUT)"; echo; \
	"$$bin" run tour --quick --out $(OUT)

test: ## Run every test that this machine can run
	@CARGO=$(CARGO) scripts/test.sh

# Each part can run alone; with `make -k verify` one that fails does not stop the others.
verify: $(VERIFY) fuzz packages ## Run the long checks, hours: the seven verify-*, fuzz and packages

# One test at a time: some load the whole machine, others count what is left of its namespaces.
verify-attacks: ## Run the ignored tests: a million hostile datagrams, 200 tests at a time; attacks by another program
	$(CARGO) test --locked --package fullpipe-net --package fullpipe --test it -- --ignored --test-threads 1 --skip spreading --skip emulator
	$(CARGO) build --release --locked --package fullpipe
	@python3 -c 'import blake3, cryptography' 2>/dev/null || { echo 'make: python3 lacks the packages of contrib/python/requirements.txt' >&2; exit 3; }
	FULLPIPE=$${CARGO_TARGET_DIR:-target}/release/fullpipe python3 -B contrib/python/attacks/run.py

verify-histories: ## Run a million histories, networks and frames, and 20 times the properties
	LITERAL_HISTORIES=$(HISTORIES) $(CARGO) test --release --locked --package fullpipe-flow --test literal -- --ignored a_million_histories
	LITERAL_SET=newreno LITERAL_HISTORIES=$(HISTORIES) $(CARGO) test --release --locked --package fullpipe-flow --test literal -- --ignored a_million_histories
	PROPERTY_CASES=20 PROPERTY_SEED=$$(date +%s) \
	$(CARGO) test --locked --package fullpipe-scenario --test it recovery::properties
	PROPERTY_CASES=300 $(CARGO) test --release --locked --package fullpipe-flow --test it model::
	FRAME_CASES=1000000 $(CARGO) test --locked --package fullpipe-emulate --test it frames

verify-search: ## Judge the frozen searches again; search 30 minutes more where a kernel is built
	for log in search search-long-fat search-bbr3; do \
	  mkdir -p fullpipe-out/frozen-$$log && \
	  gzip -dc calibrate/reference/$$log.jsonl.gz > fullpipe-out/frozen-$$log/fuzz.jsonl && \
	  $(CARGO) run --release --locked --package fullpipe-calibrate -- fuzz --again --strict --out fullpipe-out/frozen-$$log || exit 1; \
	done
	for paths in small long-fat; do \
	  $(CARGO) run --release --locked --package fullpipe-calibrate -- fuzz --optional --paths $$paths \
	    --seed $$(date +%s)000 --for 15m --out fullpipe-out/fuzz-verify-$$paths || exit 1; \
	done

# `slac` and `tour` run others of them.
verify-scenarios: ## Run every built-in scenario in full, the long ones in wrong worlds: 90 minutes
	$(CARGO) test --release --locked --package fullpipe-results --test it -- --ignored built_in
	$(CARGO) build --release --locked --package fullpipe
	@failed=; for file in scenarios/*.toml; do name=$$(basename $$file .toml); \
	case $$name in slac|tour) continue;; esac; \
	$${CARGO_TARGET_DIR:-target}/release/fullpipe run $$name --out fullpipe-out/study/$$name --replace >/dev/null || failed="$$failed $$name"; done; \
	if [ -n "$$failed" ]; then echo "failed:$$failed" >&2; exit 1; fi

verify-mutants: ## Break constants and recovery rules one by one: does a test notice?
	scripts/mutants.py --quick
	scripts/defects.py

verify-tuner: ## Measure what laws of the tuner do and cost; replace policies under 1,000 flows; follow docs/first-policy.md; have two tuners probe each other (needs root)
	$(CARGO) test --locked --package fullpipe-tune --test it -- --ignored --nocapture --test-threads 1 long:: table:: ground::
	$(CARGO) build --release --locked --package fullpipe --features tune --target-dir $${CARGO_TARGET_DIR:-target}/deb
	scripts/first_policy.py $${CARGO_TARGET_DIR:-target}/deb/release/fullpipe
	scripts/two_tuners.py $${CARGO_TARGET_DIR:-target}/deb/release/fullpipe

# `make test` tries the module where the other crates are built.
verify-wheel: ## Build the Python wheel, install it, run the Python tests with it (needs maturin)
	WHEEL=1 crates/py/check.sh

# Seeds are read as well as the corpus that earlier runs have found; a crash leaves its input in
# fuzz/artifacts.
fuzz: ## Run each fuzz target for FUZZ_SECONDS (needs cargo-fuzz)
	@$(CARGO) fuzz --version >/dev/null 2>&1 || { echo 'make: cargo-fuzz is missing: cargo install cargo-fuzz --locked' >&2; exit 3; }
	@for target in scenario policy wire handshake control files trees endpoint; do \
	mkdir -p fuzz/corpus/$$target; \
	case $$target in scenario|policy) more="-dict=fuzz/$$target.dict";; control) more='-max_len=4096';; files|trees) more='-max_len=1024';; *) more='-max_len=2048';; esac; \
	echo "fuzz $$target for $(FUZZ_SECONDS) s"; \
	RUSTC_BOOTSTRAP=1 $(CARGO) fuzz run $$target fuzz/corpus/$$target $$(ls -d fuzz/seeds/$$target 2>/dev/null) -- $$more -verbosity=0 -max_total_time=$(FUZZ_SECONDS) || exit 1; done

bench: ## Measure the simulator: packets per second, instructions per packet, ns-2, ns-3
	@bench/run.sh

bench-udp: ## Measure UDP over loopback beside kernel TCP, UDT and quinn
	@bench/udp/run.py

calibrate: ## Compare the simulator with Linux: build kernels, run every cell, report
	$(CARGO) build --release --locked --package fullpipe --package fullpipe-calibrate
	target/release/fullpipe linux build
	target/release/fullpipe linux build --version 6.12
	target/release/fullpipe linux build --hz 100 --name 6.1-hz100
	target/release/fullpipe linux build --hz 1000 --name 6.1-hz1000
	target/release/fullpipe-calibrate measure --again --jobs $$(nproc) --out calibrate-out/runs
	target/release/fullpipe-calibrate freeze --out calibrate-out/runs --to calibrate-out/reference
	$(CARGO) run --release --locked --package fullpipe-calibrate -- report --reference calibrate-out/reference --to calibrate-out/report.html

web: ## Build and test the report page (needs node 20, chromium, a built fullpipe)
	cd web && npm ci --ignore-scripts && npm run --silent check && npm run --silent build && npm test --silent && npm run --silent test:page

lint: ## Check format, prose, circles of files, docs/published.md, defects and mutants that no longer apply, lints, fuzz targets, licences
	$(CARGO) fmt --all --check
	scripts/lint.py
	python3 -B scripts/lint_test.py
	python3 -B scripts/published_test.py
	scripts/published.py --check
	scripts/mutants.py --check
	scripts/defects.py --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	@for f in '' registry linux guests serde; do echo "check fullpipe-cc with features '$$f' alone"; \
	$(CARGO) check --quiet --locked -p fullpipe-cc --no-default-features --features "$$f" || exit 1; done
	@echo 'check the fuzz targets, without libFuzzer itself'
	@CUSTOM_LIBFUZZER_PATH=/nowhere/libnone.a $(CARGO) check --quiet --locked --manifest-path fuzz/Cargo.toml --target-dir $${CARGO_TARGET_DIR:-target}
	@if $(CARGO) deny --version >/dev/null 2>&1; then $(CARGO) deny --locked check bans licenses sources; \
	else echo 'skipped: licences and bans (cargo-deny is missing: cargo install cargo-deny --locked)'; fi

site: ## Build the documentation site into target/site (needs crates/py/requirements.txt)
	crates/py/site/build.sh

packages: ## Build the Debian package and the static program into target/packages, and try them (needs root)
	scripts/packages.sh deb static
	scripts/packages_test.sh deb static install

wheel: ## Build the Python wheel, the command in it, into target/wheels (needs maturin)
	@command -v maturin >/dev/null || { echo 'make: maturin is missing: pip install maturin' >&2; exit 3; }
	$(CARGO) build --profile dist --locked --package fullpipe
	@target=$$($(CARGO) metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/'); \
	mkdir -p crates/py/python/fullpipe/bin; \
	strip -o crates/py/python/fullpipe/bin/fullpipe "$$target/dist/fullpipe"; \
	cd crates/py && maturin build --profile dist --locked --out "$$target/wheels"
