# One word for each thing people do. CMake does the work; `cmake --preset dev` and friends are
# there for those who want it directly.
#
#   make            build            make demo      build, draw an image, denoise it in a budget
#   make test       build and test   make bench     build, measure beside the peers (bench/README.md)
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

.DEFAULT_GOAL := build
.PHONY: build demo test test-long bench install package format lint tidy deps clean

deps:
	@scripts/deps-debian build

$(BUILD)/build.ninja: | deps
	cmake --preset $(PRESET) -B $(BUILD) $(CMAKE_ARGS)

build: deps $(BUILD)/build.ninja
	cmake --build $(BUILD) -j $(JOBS)

# Two programs of all that is built: the GPU's kernels alone take a quarter of an hour.
demo: deps $(BUILD)/build.ninja
	cmake --build $(BUILD) -j $(JOBS) --target tegula tegula-draw
	scripts/demo $(BUILD)

# Every test that needs no accelerator and less than minutes; `test-long` adds the long ones.
test: build
	ctest --test-dir $(BUILD) -j $(JOBS) --output-on-failure --no-label-summary -LE '^(long|gpu)$$'

test-long: build
	ctest --test-dir $(BUILD) -j $(JOBS) --output-on-failure --no-label-summary -LE '^gpu$$'

bench: deps
	@scripts/deps-debian bench
	cmake --preset $(PRESET) -B $(BUILD) -DTG_BENCH=ON $(CMAKE_ARGS)
	cmake --build $(BUILD) -j $(JOBS)
	python3 -B bench/run.py --build $(BUILD) $(BENCH)

install: build
	cmake --install $(BUILD) --prefix $(PREFIX)

package: build
	cmake --build $(BUILD) --target package

format:
	@scripts/deps-debian lint
	git ls-files -- '*.c' '*.h' '*.cu' '*.cuh' | xargs clang-format -i

lint: build
	@scripts/deps-debian lint
	cmake --preset $(PRESET) -B $(BUILD) $(CMAKE_ARGS)
	ctest --test-dir $(BUILD) --output-on-failure --no-label-summary -L '^lint$$' -LE '^long$$'
	python3 tests/lint/format.py

tidy: build
	@scripts/deps-debian lint
	python3 tests/lint/tidy.py $(BUILD)

clean:
	rm -rf $(BUILD)
