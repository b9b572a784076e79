#!/bin/bash
# Runs suites and the program on emulated processors (QEMU), on an x86-64 machine:
#   Nehalem   x86-64 without AVX, where the ordinary build uses the kernels of `baseline`
#   Haswell   x86-64 without AVX-512, where it uses those of `avx2`
#   aarch64   a cross-compiled build, in build-aarch64/, with Debian's libraries for that architecture (aarch64.sh): all
#             suites that such a processor says something about; kernels also on a Neoverse N1, without products of
#             matrices of bytes, and on a Cortex-A53, without any of bytes
# usage: other_processors.sh [PROCESSOR…]   (default: all)
# Haswell and aarch64 must also compute the bits of this machine: those of every op, and of TAPES (20) random programs.
# Installs what is missing for this. JOBS (2) is the number of compilers, and of suites, at a time; PATIENCE
# (20) multiplies the time limit of a suite. The last line is "N passed, N failed", with ", N skipped" for cases that
# need instructions which the processor lacks. The exit code is 1 if anything failed.
set -uo pipefail
cd "$(dirname "$0")/.."
unset XTAPE_ISA OPENBLAS_CORETYPE # the tests' LAPACK must choose its kernels for the emulated processor, too
jobs=${JOBS:-2}
patience=${PATIENCE:-20}
passed=0
failed=0
skipped=0
output=$(mktemp)
trap 'rm -f "$output"' EXIT

finish() {
  echo "$passed passed, $failed failed$([ "$skipped" = 0 ] || echo ", $skipped skipped")"
  [ "$failed" = 0 ] && [ "$passed" -gt 0 ]
  exit
}
give_up() {
  echo "$1" >&2
  failed=$((failed + 1))
  finish
}

# The last line that the command prints is its count; without one, it counts as a failure.
count() { # count COMMAND…
  local line
  "$@" | tee "$output" >&2
  line=$(tail -n 1 "$output")
  if [[ $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed(,\ ([0-9]+)\ skipped)?$ ]]; then
    passed=$((passed + BASH_REMATCH[1]))
    failed=$((failed + BASH_REMATCH[2]))
    skipped=$((skipped + ${BASH_REMATCH[4]:-0}))
  else
    failed=$((failed + 1))
  fi
}

check() { # check NAME INSTRUCTION_SET EMULATOR SUITE…: with the ordinary build
  local name=$1 set=$2 emulator=$3 targets=(src/cli/xtape) suite
  shift 3
  echo "$name: building in build" >&2
  bash scripts/configure.sh build || give_up "the setup of build failed"
  for suite in "$@"; do targets+=("tests/${suite}_test"); done
  ninja -C build --quiet -j "$jobs" "${targets[@]}" >&2 || give_up "the build for $name failed"

  local program=build/xtape-$name
  printf '#!/bin/sh\nexec %s %q "$@"\n' "$emulator" "$PWD/build/src/cli/xtape" >"$program"
  chmod +x "$program"
  echo "$name: the program" >&2
  count bash tests/cli/processor.sh "$program" "$PWD" "$set"
  echo "$name: suites" >&2
  count python3 tests/run.py --jobs "$jobs" --patience "$patience" --under "$emulator" "build:$(IFS=,; echo "$*")"
}

check_narrower() { # check_narrower PROCESSOR INSTRUCTION_SET SUITE: with the build for AArch64
  echo "$1: the program and kernels" >&2
  count env QEMU_CPU="$1" bash scripts/aarch64.sh run bash tests/cli/processor.sh build-aarch64/src/cli/xtape "$PWD" "$2"
  count env QEMU_CPU="$1" bash scripts/aarch64.sh run python3 tests/run.py --patience "$patience" "build-aarch64:$3"
}

check_aarch64() {
  bash scripts/aarch64.sh setup || give_up "the setup for aarch64 failed"
  bash scripts/configure.sh build-aarch64 --cross-file build-aarch64/cross.ini -Dmpi=disabled ||
    give_up "the setup of build-aarch64 failed"
  echo "aarch64: building in build-aarch64" >&2
  ninja -C build-aarch64 --quiet -j "$jobs" meson-test-prereq >&2 || give_up "the build for aarch64 failed"
  local left_out=(
    sources packaging                         # they look at files
    docs install                              # they compile with the compiler of this machine
    abi languages                             # they load the library in programs of this machine
    report-views report-inputs report-pictures # they test pages in a browser of this machine
    limits                                    # they limit the address space, of which QEMU needs more
    "base sanitized"                          # AddressSanitizer reserves address space for which QEMU has no memory
    signals                                   # QEMU catches all signals, so nothing shows which ones the program catches
    faults                                    # file operations fail alike everywhere; QEMU translates anew in every process
    kernels-baseline kernels-dotprod          # narrower processors run them
  )
  echo "aarch64: the program and suites" >&2
  count bash scripts/aarch64.sh run bash tests/cli/processor.sh build-aarch64/src/cli/xtape "$PWD" i8mm
  count bash scripts/aarch64.sh run python3 tests/run.py --jobs "$jobs" --patience "$patience" \
    "build-aarch64:$(printf -- '-%s,' "${left_out[@]}")"
  check_narrower neoverse-n1 dotprod kernels-dotprod
  check_narrower cortex-a53 neon kernels-baseline
}

compare_bits() { # compare_bits NAME BUILD UNDER
  local each
  echo "$1: bits" >&2
  bash scripts/configure.sh build || give_up "the setup of build failed"
  for each in build "$2"; do
    ninja -C "$each" --quiet -j "$jobs" tests/bits tests/tapes >&2 || give_up "the build of $each failed"
  done
  if python3 scripts/replay.py build "$2" --under "$3" --only ops,tapes --tapes "${TAPES:-20}" --out "$2/replayed" >&2; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
  fi
}

bash scripts/setup.sh qemu-user-static || give_up "the setup failed"
processors=("$@")
[ $# -gt 0 ] || processors=(Nehalem Haswell aarch64)
for processor in "${processors[@]}"; do
  case $processor in
    Nehalem) check Nehalem baseline "qemu-x86_64-static -cpu Nehalem" base kernels-baseline tape ops ;;
    Haswell) # without what QEMU would warn that it cannot emulate
      haswell="qemu-x86_64-static -cpu Haswell-noTSX,-pcid,-x2apic,-tsc-deadline,-invpcid"
      check Haswell avx2 "$haswell" base kernels-avx2 tape ops
      compare_bits Haswell build "$haswell" ;;
    aarch64)
      check_aarch64
      compare_bits aarch64 build-aarch64 "bash scripts/aarch64.sh run" ;;
    *) give_up "there is no processor '$processor': Nehalem, Haswell or aarch64" ;;
  esac
done
finish
