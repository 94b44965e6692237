# One word for each thing people do. CMake does the work; `cmake --preset dev` and friends are
# there for those who want it directly.
#
#   make            build            make demo      build, draw an image, denoise it in a budget
#   make test       build and test   make bench     build, measure beside the peers (bench/README.md)
#   make test-more  what that leaves out and CI runs
#   make test-sets  the tests on lesser instruction sets; CI runs them, too
#   make demo-video the same of a film: draw one, remove what moves in it
#   make install    PREFIX=...       make package   .deb and .tar.gz
#   make format     clang-format     make lint      layers, headers, clang-tidy, format
#
# BENCH="nets --rounds 9" is what the benchmarks are told (all of them, short, without).
# JOBS=n limits parallel work; BUILD=dir chooses the build folder; PRESET=dev another preset.

PRESET ?= release
BUILD ?= build-$(PRESET)
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
PREFIX ?= /usr/local
CMAKE_ARGS ?=
BENCH ?=
CTEST = ctest --test-dir $(BUILD) -j $(JOBS) --output-on-failure --no-label-summary
OR_SAY = || { scripts/what-failed $(BUILD); exit 1; }

.DEFAULT_GOAL := build
.PHONY: build demo demo-video test test-more test-sets test-long bench install package format lint tidy deps clean

deps:
	@scripts/deps-debian build

$(BUILD)/build.ninja: | deps
	cmake --preset $(PRESET) -B $(BUILD) $(CMAKE_ARGS)

build: deps $(BUILD)/build.ninja
	cmake --build $(BUILD) -j $(JOBS) --target product

demo: deps $(BUILD)/build.ninja
	cmake --build $(BUILD) -j $(JOBS) --target tegula tegula-draw
	scripts/demo $(BUILD)

demo-video: deps $(BUILD)/build.ninja
	cmake --build $(BUILD) -j $(JOBS) --target tegula tegula-draw-film
	scripts/demo-video $(BUILD)

# What everybody should see green before and after a change, in minutes; `test-more` is what it leaves out and
# CI runs: other instruction sets (label sets), the emulated GPU (cuda), what takes long for what it finds (more),
# and the plugin, for every GPU that nvcc knows. `test-long`: also what takes longer.
test: deps $(BUILD)/build.ninja
	cmake --build $(BUILD) -j $(JOBS) --target tests
	@$(CTEST) -LE '^(long|gpu|cuda|sets|more)$$' $(OR_SAY)

test-more: deps
	cmake --preset $(PRESET) -B $(BUILD) -DTG_CUDA_FOR=all $(CMAKE_ARGS)
	cmake --build $(BUILD) -j $(JOBS) --target tests_more
	@$(CTEST) -L '^(cuda|sets|more)$$' -LE '^(long|gpu)$$' $(OR_SAY)

# The tests of `make test` once more on each instruction set that is less than the machine's best: TEGULA_ISA makes
# it one of those. What has no set of its own (lint, docs) is left out; of what does not compute (files from
# strangers, options, other readers) one lesser set is enough.
COMPUTE = unit|property|memory|device|film|conformance|crash
test-sets: deps $(BUILD)/build.ninja
	cmake --build $(BUILD) -j $(JOBS) --target tests
	@flags=" $$(sed -n 's/^flags[^:]*://p' /proc/cpuinfo 2>&1 | head -1) "; sets=""; \
	case "$$flags" in *" avx2 "*) sets="portable";; esac; \
	case "$$flags" in *" avx512vl "*) sets="$$sets avx2";; esac; \
	case "$$flags" in *" avx512_bf16 "*) sets="$$sets avx512-nobf16";; esac; \
	first=1; for set in $$sets; do \
	  echo "the tests on $$set"; \
	  if [ $$first = 1 ]; then labels="."; else labels="^($(COMPUTE))$$"; fi; first=0; \
	  TEGULA_ISA=$$set $(CTEST) -L "$$labels" -LE '^(long|gpu|cuda|sets|more|lint|docs)$$' $(OR_SAY); \
	done

test-long: deps $(BUILD)/build.ninja
	cmake --build $(BUILD) -j $(JOBS) --target tests_more
	@$(CTEST) -LE '^gpu$$' $(OR_SAY)

bench: deps
	@scripts/deps-debian bench
	cmake --preset $(PRESET) -B $(BUILD) -DTG_BENCH=ON $(CMAKE_ARGS)
	cmake --build $(BUILD) -j $(JOBS)
	python3 -B bench/run.py --build $(BUILD) $(BENCH)

install: build
	cmake --install $(BUILD) --prefix $(PREFIX)

# For every GPU, wherever it is built.
package: deps
	cmake --preset $(PRESET) -B $(BUILD) -DTG_CUDA_FOR=all $(CMAKE_ARGS)
	cmake --build $(BUILD) -j $(JOBS) --target product
	cmake --build $(BUILD) --target package

format:
	@scripts/deps-debian lint
	git ls-files -- '*.c' '*.h' '*.cu' '*.cuh' '*.cc' | xargs clang-format -i

lint: deps $(BUILD)/build.ninja
	@scripts/deps-debian lint
	cmake --preset $(PRESET) -B $(BUILD) $(CMAKE_ARGS)
	cmake --build $(BUILD) -j $(JOBS) --target product
	ctest --test-dir $(BUILD) --output-on-failure --no-label-summary -L '^lint$$' -LE '^long$$'
	python3 tests/lint/format.py

tidy: build
	@scripts/deps-debian lint
	python3 tests/lint/tidy.py $(BUILD)

clean:
	rm -rf $(BUILD)
