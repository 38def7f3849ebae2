# `make help` lists what can be made. Everything that builds first sees that what it needs is installed.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DEFAULT_GOAL := help
.PHONY: help quickstart study-small smoothness-small search-rules convolutions test test-data test-double test-gpu test-kit gpu-cost test-inputs fuzz test-mpi test-slurm test-nodes same-records no-old simulate soak scale coverage build dist wheel test-dist test-container test-neon test-prefix test-install bench paper release-data check check-targets size licences nvrtc setup clean

# rustup installs here and may not be in the PATH yet.
export PATH := $(PATH):$(HOME)/.cargo/bin
TARGET := $(or $(CARGO_TARGET_DIR),target)
ifneq ($(words $(TARGET)),1)
$(error expected a folder without spaces, found CARGO_TARGET_DIR=$(TARGET): set it to another)
endif
# Cargo's profile of the programs; its profile dev has a folder of another name.
PROFILE ?= release
PROGRAMS := $(TARGET)/$(if $(filter dev,$(PROFILE)),debug,$(PROFILE))
TRAIN := $(PROGRAMS)/dps-train
# Prints the oldest Rust that dps is promised to be built by.
oldest_rust := sed -nE 's/^rust-version = "([0-9.]+)".*/\1/p' Cargo.toml
# By its own name in a recipe, make -n would run the whole recipe.
make_after := $(MAKE)

help: ## list what can be made
	@sed -nE 's/^([a-z-]+):[^#]*## /\1\t/p' Makefile | while IFS=$$'\t' read -r name words; do printf '  make %-16s %s\n' "$$name" "$$words"; done

# Python's virtual environment in a folder; pip comes last, and is missing where its making was interrupted.
need_venv = [ -x "$(1)/bin/pip" ] || python3 -m venv --clear "$(1)"

# A study of Fashion-MNIST on two ranks.
define on_two_ranks
@$(TRAIN) data fetch fashion-mnist
options=()
# Open MPI does not start as root unless told twice that this is meant, as in a container.
if [ "$$(id -u)" = 0 ]; then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi
if [ "$$(nproc)" -lt 2 ]; then options+=(--oversubscribe); fi
echo "mpirun -n 2 $(TRAIN) $(1)"
mpirun "$${options[@]}" -n 2 $(TRAIN) $(1)
endef

# RESULTS=FOLDER puts the study there, in place of results.
quickstart: build ## measure a small study of Fashion-MNIST on two ranks, in a minute or two
	$(call on_two_ranks,configs/quickstart.toml$(if $(RESULTS), --output $(RESULTS)/quickstart.h5))

study-small: build ## measure the README's sample study of Fashion-MNIST on two ranks, in less than an hour of two cores, and report it
	$(call on_two_ranks,configs/study-small.toml)
	$(PROGRAMS)/dps-report results/study-small.h5 --output results/study-small

smoothness-small: build ## measure the loss surface of docs/experiments.md, sparse and dense, on two ranks, in twenty minutes of processor time; report it, with the sample study if that is there
	$(call on_two_ranks,configs/smoothness-small.toml)
	files=(results/smoothness-small.h5)
	if [ -e results/study-small.h5 ]; then files=(results/study-small.h5 "$${files[@]}"); fi
	$(PROGRAMS)/dps-report "$${files[@]}" --output results/smoothness-small

search-rules: build ## measure whether a search gains by trials near its best ones, and by confirming more points: an hour of a core
	@$(TRAIN) data fetch fashion-mnist
	python="$(abspath $(TARGET))/search-python"
	$(call need_venv,$$python)
	"$$python/bin/pip" install --quiet h5py
	"$$python/bin/python" tests/bench/search.py $(PROGRAMS) results/search-rules

convolutions: build ## measure whether execution.convolutions changes how many steps MNIST takes, and what a step takes: ten minutes of two cores
	@$(TRAIN) data fetch mnist
	python="$(abspath $(TARGET))/search-python"
	$(call need_venv,$$python)
	"$$python/bin/pip" install --quiet h5py scipy
	"$$python/bin/python" tests/bench/convolutions.py $(PROGRAMS) results/convolutions

test: setup nvrtc ## test dps, and the GPU's code on the host; first that the programs build, measure and report without MPI and CUDA
	@echo "== Single-process programs, without MPI and CUDA"
	# Without optimisation: they compute little.
	cargo build --no-default-features --bins --config profile.dev.package.dps.opt-level=0
	$(TARGET)/debug/dps-train configs/quickstart.toml --plan
	$(TARGET)/debug/dps-train configs/examples/own-data-digits.toml --data tests/fixtures/data --batch-size 32 --trials 1 --set workload.max_steps=24 \
		--fresh --quiet --output $(TARGET)/one-process.h5
	$(TARGET)/debug/dps-report $(TARGET)/one-process.h5 --output $(TARGET)/one-process
	echo "== Everything, some of it under mpirun"
	DPS_NEED_NVRTC=1 tests/run.py
	# Predictions take one core, and leave the other one to the stand-in. By PTX it checks more than by source, and some of the tests above ran studies
	# by source.
	$(make_after) --no-print-directory -j2 gpu-cost test-double BY=ptx

# BY=ptx runs them one way alone.
BY ?= source ptx
test-double: setup nvrtc ## run the GPU back end's tests on the host, through a stand-in for CUDA, by the kernels' source and by their PTX
	@echo "== The GPU back end through a stand-in for CUDA: no GPU's result"
	double="$(abspath $(TARGET))/cuda-double"
	tests/cuda-double/build.sh "$$double"
	# The program keeps what NVRTC made; the stand-in's is a path, not to be kept.
	export LD_LIBRARY_PATH=$$double CUDA_EMU_CACHE=$$double XDG_CACHE_HOME=/dev/null
	export CUDA_EMU_DEVICES=3 CUDA_EMU_STREAMS=lazy CUDA_EMU_PAGEABLE=late DPS_NEED_CUDA=1 DPS_NEED_CUDA_EMU=1
	tests=(--test cuda --test cuda_networks --test cuda_products --test cuda_study)
	for by in $(BY); do
		case $$by in
		source)
			echo "== By the kernels' source"
			CUDA_EMU_ORDER=rand tests/run.py "$${tests[@]}" ;;
		ptx)
			echo "== By the PTX that NVIDIA's compiler makes of the kernels"
			# A part of the networks, as each takes longer, and another one for each commit. DPS_NETWORKS=8 has all that is tested by source, 60 has
			# more random ones either way, and DPS_FROM=1000 begins at that seed.
			export DPS_FROM=$${DPS_FROM:-$$((16#$$(git rev-parse --short=5 HEAD 2> /dev/null || echo 0)))}
			DPS_NETWORKS=$${DPS_NETWORKS:-4} CUDA_EMU_CODE=ptx CUDA_EMU_NVRTC="$(abspath $(TARGET))/nvrtc/nvidia/cuda_nvrtc/lib" CUDA_EMU_ORDER=turns \
				tests/run.py "$${tests[@]}" ;;
		*) echo "BY may name source and ptx, not $$by." >&2; exit 2 ;;
		esac
	done

test-gpu: setup nvrtc ## compare this machine's GPU with its CPU and time it, in fourteen minutes after the build; skipped without one
	@folder="$(abspath $(TARGET))/gpu-test"
	tests/gpu/build.sh "$$folder" mpi,cuda
	for plan in first second; do
		python3 "$$folder/run.py" --plan "$$plan" --out "$$folder/measured-$$plan" || { code=$$?; [ $$code = 77 ] || exit $$code; break; }
	done

test-kit: setup nvrtc ## build the kit for a machine with a GPU, and rehearse all of its plans in an empty root, through the stand-in for CUDA
	@kit="$(abspath $(TARGET))/kit"
	tests/gpu/build.sh "$$kit/folder"
	tests/cuda-double/build.sh "$(abspath $(TARGET))/cuda-double"
	tests/gpu/rehearse.py "$$kit/folder" "$(abspath $(TARGET))/cuda-double" "$$kit/root"

# WRITE=1 puts the tables into docs/gpu.md; without it they must be there.
gpu-cost: setup nvrtc ## predict a GPU's times from the machine code of its kernels; needs no GPU
	@folder=$(TARGET)/nvdisasm
	if [ ! -e "$$folder/done" ]; then
		rm -rf "$$folder"
		pip=(python3 -m pip)
		if [ -x "$(TARGET)/nvrtc/venv/bin/pip" ]; then pip=("$(TARGET)/nvrtc/venv/bin/pip"); fi
		"$${pip[@]}" install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --target "$$folder" nvidia-cuda-nvdisasm==13.5.37
		touch "$$folder/done"
	fi
	made=$(TARGET)/tmp/kernels/simple-cnn-split.cubin
	if [ ! -e "$$made" ] || [ -n "$$(find kernels src/backend/cuda src/network tests/gpu/kernels_compile.rs -newer "$$made" -type f)" ]; then
		DPS_NEED_NVRTC=1 cargo test --quiet --test gpu kernels_compile::
	fi
	chmod +x "$$folder/nvidia/cu13/bin/nvdisasm"
	python3 tests/gpu/cost.py $(TARGET)/tmp/kernels "$$folder/nvidia/cu13/bin/nvdisasm" --page docs/gpu.md $(if $(WRITE),--write)

test-data: build ## test on real data what the others test on made-up ones
	@$(TRAIN) data fetch fashion-mnist
	cargo test --test study real_data:: -- --ignored --nocapture

test-mpi: setup ## build with Open MPI 5 and MPICH 5 (from PyPI) too, and start each program by each mpirun; needs Python's venv
	@tests/mpi/run.sh $(TARGET)

# ALONE=FOLDER has the programs of the tasks that are single processes, such as an archive's.
test-slurm: build ## run the batch scripts on a real Slurm on this machine; needs root
	@if ! command -v slurmctld > /dev/null || ! command -v munged > /dev/null; then
		apt-get update -q
		DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends slurm-wlm munge
	fi
	tests/slurm/run.sh $(PROGRAMS) $(ALONE)

test-nodes: build ## run studies on two nodes made of namespaces on this machine, by ssh and by Slurm, and lose one; needs root
	@if ! command -v slurmctld > /dev/null || ! command -v munged > /dev/null || ! command -v ip > /dev/null || [ ! -x /usr/sbin/sshd ]; then
		apt-get update -q
		DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends slurm-wlm munge iproute2 openssh-client openssh-server
	fi
	tests/nodes/run.sh $(PROGRAMS)

test-inputs: build ## run some 1,700 bad inputs, each of which must end in a sentence and an exit code; in two minutes
	@tests/checks/bad_inputs.py --self-test
	# Most of the time goes into waiting for a disk, which a file system in memory has none of.
	if [ -w /dev/shm ]; then export TMPDIR=/dev/shm; fi
	tests/checks/bad_inputs.py $(PROGRAMS)

# FORMAT=npz reads inputs of one format, FROM=5000 begins at that seed, and FORMAT=npz SEED=123 plays one input again.
SECONDS ?= 60
fuzz: setup ## give every reader of dps damaged and made-up inputs for SECONDS=60, each from a seed; a fault is named with its own
	@if [ -w /dev/shm ]; then export TMPDIR=/dev/shm; fi
	DPS_FUZZ_SECONDS=$(SECONDS) FORMAT=$(FORMAT) FROM=$(FROM) SEED=$(SEED) cargo test --quiet --test fuzz

same-records: $(if $(OLD),build,no-old) ## compare this build's records with those of the dps-train in the folder OLD, bit for bit; needs Python's h5py
	@$(TRAIN) data fetch mnist
	tests/checks/same_records.py "$(OLD)" $(PROGRAMS)

no-old:
	@echo "expected OLD, the folder of the dps-train to compare with, found none: make same-records OLD=FOLDER" >&2
	exit 2

# SEED=123 plays one history again, FROM=5000 begins at that seed.
SEEDS ?= 1000
simulate: setup ## play SEEDS=1000 histories of studies on simulated ranks and disks, with faults; the first that fails is named
	@SEED=$(SEED) FROM=$(FROM) SEEDS=$(SEEDS) cargo test --test simulation -- --ignored --nocapture many

soak: setup ## kill a random rank 200 times, and compare what comes out
	@cargo test --test stops -- --ignored --nocapture soak

scale: build ## print what many ranks and many trials cost: messages on simulated ranks, starts on 1 to 8, files of up to a million trials
	@$(TRAIN) data fetch fashion-mnist
	cargo test --test simulation exchange:: -- --include-ignored --nocapture --test-threads=1
	python3 tests/bench/starts.py $(PROGRAMS)
	cargo test --test results scale:: -- --ignored --nocapture

coverage: setup ## simulate 600 studies of each kind, and write how often the report's intervals hold the truth into docs/results.md: a few minutes
	@DPS_COVERAGE=600 DPS_WRITE_PAGES=1 cargo test --test report -- coverage:: rules:: --nocapture

# With the tests, whose libraries want more features of some that the programs use too: without them these would be built twice. The tests of src/ are
# not among them: tests/run.py builds these less optimised.
build: setup ## build the optimised programs; PROFILE=dev: those that the tests start, and the tests
	@cargo build --profile $(PROFILE) $(if $(filter dev,$(PROFILE)),--bins --test '*')

# ARCHITECTURES=x86_64 makes and tests some. What is made lies in target/dist; docs/install.md says how to use it.
ARCHITECTURES ?= x86_64 aarch64
dist: ## make archives of the programs for Linux on x86-64 and 64-bit Arm, which need nothing of a machine; needs rustup, venv and qemu-user-static
	@packaging/archives.sh $(TARGET)/dist $(ARCHITECTURES)

wheel: dist ## make wheels for pip of the programs and Python's package dps_results, from the archives
	@packaging/wheels.sh $(TARGET)/dist $(ARCHITECTURES)

test-dist: wheel ## start the archives' programs in an empty root, Arm's under qemu, and the wheel's in a new virtual environment; compare their records
	@tests/dist/run.sh $(TARGET)/dist $(ARCHITECTURES)

test-container: ## build the images of packaging/ without a registry, and run a study in one; needs root, buildah, podman, runc and mmdebstrap
	@tests/dist/container.sh $(TARGET)/container

test-neon: ## run the tests of the CPU back end on NEON, Arm's vector unit, under qemu; needs what dist needs
	@tests/dist/neon.sh $(TARGET)/dist

test-prefix: ## build HDF5, Open MPI and the programs in a home folder, as a user of a system without them; needs root and mmdebstrap
	@tests/dist/prefix.sh $(TARGET)/prefix

# WAYS="archive container" tries the ways that have one of these words in their names. WRITE=1 puts the table into docs/install.md.
test-install: ## try every way of docs/install.md by its test, and write a table of what came out into target/install; needs root and an hour or two
	@tests/dist/install.sh $(TARGET)/install $(WAYS)

# PARTS="ranks cell" makes some of it, QUICK=1 shows in a few minutes that all of it works. WHOLE=1 trains the cell's trials to their own ends.
PARTS ?= kernels reading training evaluation sparse ranks cell costs
bench: build ## print how fast this machine trains, beside PyTorch and JAX (which it installs: 3 GB), and what steps cost: half an hour
	@parts=($(PARTS)) options=($(if $(QUICK),--quick)) peers=() packages=()
	for part in "$${parts[@]}"; do
		case $$part in
		kernels) cargo bench --bench training -- "$${options[@]}" ;;
		reading) cargo bench --bench reading ;;
		training | evaluation | ranks | cell) peers+=("$$part") packages+=(numpy torch jax) ;;
		sparse) peers+=("$$part") packages+=(numpy torch sparselab) ;;
		costs) packages+=(matplotlib) ;;
		*) echo "PARTS may name kernels, reading, training, evaluation, sparse, ranks, cell and costs, not $$part." >&2; exit 2 ;;
		esac
	done
	if [ $${#packages[@]} = 0 ]; then exit 0; fi
	$(TRAIN) data fetch fashion-mnist
	folder=$(TARGET)/bench-python
	$(call need_venv,$$folder)
	for package in "$${packages[@]}"; do
		[ -e "$$folder/$$package.done" ] || { "$$folder/bin/pip" install --quiet "$$package" && touch "$$folder/$$package.done"; } ||
			echo "$$package cannot be installed: what needs it will be called missing." >&2
	done
	programs=$$(mktemp -d)
	trap 'rm -r "$$programs"' EXIT
	cp $(TRAIN) "$$programs/dps-train"
	cp "$$(cargo bench --bench training --no-run --message-format=json 2> /dev/null | sed -nE 's/.*"executable":"([^"]*training[^"]*)".*/\1/p' | tail -n 1)" "$$programs/dps-bench"
	export PYTHONDONTWRITEBYTECODE=1
	code=0
	if [ $${#peers[@]} -gt 0 ]; then
		"$$folder/bin/python" tests/bench/peers.py "$$programs" "$${peers[@]}" "$${options[@]}" $(if $(WHOLE),--whole) || code=$$?
	fi
	if [[ " $(PARTS) " = *" costs "* ]]; then
		"$$folder/bin/python" tests/bench/costs.py "$$programs" "$${options[@]}" --figure $(TARGET)/costs.svg || code=$$?
	fi
	exit $$code

paper: setup ## write docs/experiments/paper.md, controls.md, optimizers.md, theory.md and their figures anew, from docs/experiments/data
	@DPS_WRITE_PAGES=1 cargo test --test pages the_page_of

# A release of the measured studies, in a new folder. FILES and TO name others.
FILES ?= $(wildcard docs/experiments/data/*.h5)
TO ?= results/release
release-data: build ## write the measured studies as a data set: CSV and Parquet tables, with a page that explains every column
	@python="$(abspath $(TARGET))/release-python"
	$(call need_venv,$$python)
	"$$python/bin/pip" install --quiet h5py pandas pyarrow "tomli; python_version < '3.11'"
	$(PROGRAMS)/dps-report $(FILES) --output $(TARGET)/release-report > /dev/null
	PYTHONPATH=examples/dps-results "$$python/bin/python" -m dps_results.releases --report $(TARGET)/release-report --output $(TO) $(FILES) --beside LICENSE CITATION.cff

check: setup ## check formatting, lints and documentation
	@cargo fmt --check
	cargo clippy --all-targets -- -D warnings
	# With --all-targets cargo passes over those that `cargo test` does not run, even where they are named.
	cargo clippy --test fuzz --test cuda --test cuda_networks --test cuda_products --test cuda_study -- -D warnings
	cargo clippy --all-targets --no-default-features -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --document-private-items
	tests/checks/check_text.py
	tests/checks/licences.py

# Types alone: no linker of another system is needed, and the headers of HDF5 are the same everywhere. rustup gets compiler and targets.
TARGETS ?= aarch64-unknown-linux-gnu aarch64-apple-darwin
check-targets: setup ## check by the oldest Rust allowed the programs' types: here, and without MPI for 64-bit Arm, on Linux and macOS
	@oldest=$$($(oldest_rust))
	rustup toolchain install --profile minimal "$$oldest"
	rustup target add --toolchain "$$oldest" $(TARGETS)
	export PKG_CONFIG_ALLOW_CROSS=1
	echo "== here, Rust $$oldest"
	cargo "+$$oldest" check --bins --target-dir $(TARGET)/oldest
	for target in $(TARGETS); do
		echo "== $$target, Rust $$oldest"
		cargo "+$$oldest" check --bins --target "$$target" --target-dir $(TARGET)/oldest --no-default-features --features cuda,pictures
	done

size: ## print how large the sources are, by folder; WRITE=1 puts the table into docs/architecture.md
	@tests/checks/size.py $(if $(WRITE),--write)

licences: ## write docs/licences.md: the licences of the crates that the programs contain
	@tests/checks/licences.py --write

setup: ## install what is missing on Debian and Ubuntu: compiler, MPI, libclang, HDF5, curl
	@if ! command -v cargo > /dev/null; then
		echo "Rust is missing. Install it from https://rustup.rs, or: curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh" >&2
		exit 1
	fi
	needed=$$($(oldest_rust))
	found=$$(rustc --version | sed -nE 's/^rustc ([0-9]+\.[0-9]+).*/\1/p')
	if [ "$$(printf '%s\n' "$$needed" "$$found" | sort -V | head -n 1)" != "$$needed" ]; then
		echo "Rust $$needed or newer is needed, $$found is installed; run: rustup update stable (https://rustup.rs)" >&2
		exit 1
	fi
	missing=()
	needs() { local package=$$1; shift; "$$@" &> /dev/null || missing+=("$$package"); }
	has_libclang() {
		[ -n "$${LIBCLANG_PATH-}" ] && return
		local file
		for file in /usr/lib/llvm-*/lib/libclang.so /usr/lib64/libclang.so* /usr/local/lib/libclang.so* "$$(llvm-config --libdir)/libclang.so"; do
			[ -e "$$file" ] && return
		done
		return 1
	}
	needs build-essential command -v cc
	needs libopenmpi-dev command -v mpicc
	needs openmpi-bin command -v mpirun
	needs pkg-config command -v pkg-config
	needs curl command -v curl
	needs libclang-dev has_libclang
	needs libhdf5-dev eval '[ -n "$${HDF5_DIR-}" ] || pkg-config --exists hdf5 || pkg-config --exists hdf5-serial'
	if [ $${#missing[@]} = 0 ]; then exit 0; fi
	if ! command -v apt-get > /dev/null; then
		echo "Missing, by their Debian names: $${missing[*]}. Install what this system calls them, then try again. LIBCLANG_PATH may name the folder of libclang.so, and HDF5_DIR that of HDF5." >&2
		exit 1
	fi
	if [ "$$(id -u)" = 0 ]; then
		root=()
	elif sudo -n true 2> /dev/null; then
		root=(sudo -n)
	else
		echo "Some packages are missing, and only root can install them. Run this line, then try again:" >&2
		echo "sudo apt-get update && sudo apt-get install -y $${missing[*]}" >&2
		exit 1
	fi
	echo "Installing $${missing[*]}"
	"$${root[@]}" apt-get update -q
	"$${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$${missing[@]}"

nvrtc: ## get NVIDIA's compiler of kernels from PyPI, for the tests; needs no GPU
	@folder=$(TARGET)/nvrtc
	if [ -e "$$folder/done" ]; then exit 0; fi
	rm -rf "$$folder"
	if python3 -m pip --version &> /dev/null; then
		pip=(python3 -m pip)
	elif python3 -m venv "$$folder/venv" &> /dev/null; then
		pip=("$$folder/venv/bin/pip")
	else
		echo "Python's pip is missing, and NVRTC comes from PyPI. Run this line, then try again: sudo apt-get install -y python3-pip" >&2
		exit 1
	fi
	"$${pip[@]}" install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --target "$$folder" nvidia-cuda-nvrtc-cu12==12.8.93
	touch "$$folder/done"

clean: ## remove what was built; data and results stay
	@cargo clean
