#!/bin/bash
# Runs suites and the program on emulated processors (QEMU), on an x86-64 machine:
#   Nehalem   x86-64 without AVX, where the ordinary build uses the kernels of `baseline`
#   Haswell   x86-64 without AVX-512, where it uses those of `avx2`
#   aarch64   a cross-compiled build, in build-aarch64/, with Debian's libraries for that architecture; also on a
#             Cortex-A53, which lacks the products of bytes (dotprod)
# usage: other_processors.sh [PROCESSOR…]   (default: all)
# Haswell and aarch64 must also compute the bits of this machine: those of every op, and of TAPES (20) random programs.
# Installs the emulator and the cross compiler. JOBS (2) is the number of compilers, and of suites, at a time; PATIENCE
# (20) multiplies the time limit of a suite. The last line is "N passed, N failed", with ", N skipped" for cases that
# need instructions which the processor lacks. The exit code is 1 if anything failed.
set -uo pipefail
cd "$(dirname "$0")/.."
unset XTAPE_ISA OPENBLAS_CORETYPE # the tests' LAPACK must choose its kernels for the emulated processor, too
jobs=${JOBS:-2}
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

# Debian's packages cannot all be installed for two architectures at once, so they are unpacked.
unpack_libraries() { # unpack_libraries DIRECTORY
  local root=$1 apt link target package
  [ ! -d "$root" ] || return 0
  echo "unpacking libraries for aarch64" >&2
  rm -rf "$root.part" "$root.apt"
  mkdir -p "$root.part" "$root.apt"/{lists,archives}/partial && : >"$root.apt/status" || return
  apt=(apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=root
    -o Dir::State="$root.apt" -o Dir::State::status="$root.apt/status" -o Dir::Cache="$root.apt")
  "${apt[@]}" update >&2 &&
    "${apt[@]}" install -y --download-only --no-install-recommends libxtensor-dev libxsimd-dev libopenblas-openmp-dev \
      libsentencepiece-dev libpcre2-dev libjpeg62-turbo-dev libpng-dev libutf8proc-dev zlib1g-dev libxxhash-dev nlohmann-json3-dev libcli11-dev doctest-dev \
      librandom123-dev >/dev/null || return
  for package in "$root.apt"/archives/*.deb; do dpkg -x "$package" "$root.part" || return; done
  # Absolute paths would lead to the headers and libraries of this machine.
  sed -i "s|\"/usr\"|\"$root/usr\"|" "$root.part"/usr/lib/cmake/doctest/doctestTargets.cmake || return
  find "$root.part" -type l -lname '/*' -printf '%p %l\n' |
    while read -r link target; do ln -sf "$root$target" "$link"; done
  rm -rf "$root.apt" && mv "$root.part" "$root"
}

configure_aarch64() { # configure_aarch64 BUILD ROOT
  [ ! -f "$1/build.ninja" ] || return 0
  local libraries=$2/usr/lib/aarch64-linux-gnu cache
  cache=$(command -v ccache)
  cat >"$1/cross.ini" <<END
[binaries]
c = [${cache:+'$cache', }'aarch64-linux-gnu-gcc', '--sysroot=$2']
cpp = [${cache:+'$cache', }'aarch64-linux-gnu-g++', '--sysroot=$2']
ar = 'aarch64-linux-gnu-ar'
strip = 'aarch64-linux-gnu-strip'
pkgconfig = 'pkg-config'
cmake = 'cmake'
exe_wrapper = ['qemu-aarch64', '-L', '$2']
[built-in options]
cpp_args = ['-Wno-psabi'] # no notes on what GCC 10 changed
[properties]
sys_root = '$2'
pkg_config_libdir = ['$libraries/pkgconfig', '$libraries/openblas-openmp/pkgconfig', '$2/usr/share/pkgconfig']
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
END
  bash scripts/configure.sh "$1" --cross-file "$1/cross.ini" -Dmpi=disabled
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

check() { # check NAME BUILD INSTRUCTION_SET EMULATOR SUITE…
  local name=$1 build=$2 set=$3 emulator=$4 targets=(src/cli/xtape) suite
  shift 4
  echo "$name: building in $build" >&2
  for suite in "$@"; do targets+=("tests/${suite/dotprod/baseline}_test"); done # of one program
  ninja -C "$build" --quiet -j "$jobs" "${targets[@]}" >&2 || give_up "the build for $name failed"

  local program=$build/xtape-$name
  printf '#!/bin/sh\nexec %s %q "$@"\n' "$emulator" "$PWD/$build/src/cli/xtape" >"$program"
  chmod +x "$program"
  echo "$name: the program" >&2
  count bash tests/cli/processor.sh "$program" "$PWD" "$set"
  echo "$name: suites" >&2
  count python3 tests/run.py --jobs "$jobs" --patience "${PATIENCE:-20}" --under "$emulator" \
    "$build:$(IFS=,; echo "$*")"
}

compare_bits() { # compare_bits NAME BUILD EMULATOR
  local each
  echo "$1: bits" >&2
  for each in build "$2"; do
    ninja -C "$each" --quiet -j "$jobs" tests/bits tests/tapes >&2 || give_up "the build of $each failed"
  done
  if python3 scripts/replay.py build "$2" --under "$3" --only ops,tapes --tapes "${TAPES:-20}" --out "$2/replayed" >&2; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
  fi
}

bash scripts/setup.sh qemu-user g++-aarch64-linux-gnu || give_up "the setup failed"
processors=("$@")
[ $# -gt 0 ] || processors=(Nehalem Haswell aarch64)
for processor in "${processors[@]}"; do
  case $processor in
    Nehalem)
      bash scripts/configure.sh build || give_up "the setup of build failed"
      check Nehalem build baseline "qemu-x86_64 -cpu Nehalem" base kernels-baseline tape ops ;;
    Haswell) # without what QEMU would warn that it cannot emulate
      bash scripts/configure.sh build || give_up "the setup of build failed"
      haswell="qemu-x86_64 -cpu Haswell-noTSX,-pcid,-x2apic,-tsc-deadline,-invpcid"
      check Haswell build avx2 "$haswell" base kernels-avx2 tape ops
      compare_bits Haswell build "$haswell" ;;
    aarch64)
      root=$PWD/build-aarch64/root
      unpack_libraries "$root" || give_up "Debian's packages for aarch64 cannot be unpacked"
      configure_aarch64 build-aarch64 "$root" || give_up "the setup of build-aarch64 failed"
      bash scripts/configure.sh build || give_up "the setup of build failed"
      aarch64="qemu-aarch64 -L $root -E LD_LIBRARY_PATH=/usr/lib/aarch64-linux-gnu/openblas-openmp"
      check aarch64 build-aarch64 dotprod "$aarch64" base kernels-baseline kernels-dotprod tape rewrite ops recording \
        grad player
      check Cortex-A53 build-aarch64 neon "$aarch64 -cpu cortex-a53" kernels-baseline
      compare_bits aarch64 build-aarch64 "$aarch64" ;;
    *) give_up "there is no processor '$processor': Nehalem, Haswell or aarch64" ;;
  esac
done
finish
