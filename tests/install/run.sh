#!/bin/bash
# Builds and runs an outside program against the installed library in each of the ways that are promised.
# usage: run.sh SOURCE_ROOT BUILD_ROOT
set -uo pipefail
source=$1
build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

check() { # check NAME COMMAND…: counts the command's success
  local name=$1
  shift
  if "$@" >"$work/log" 2>&1; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $name"
    tail -n 40 "$work/log"
  fi
}

meson install -C "$build" --no-rebuild --destdir "$work/root" >"$work/log" 2>&1 || {
  cat "$work/log"
  echo "0 passed, 1 failed"
  exit 1
}
pc=$(find "$work/root" -name xtape.pc)
prefix="$work/root$(sed -n 's/^prefix=//p' "$pc")"
libraries=$(cd "$(dirname "$pc")/.." && pwd)
export PKG_CONFIG_PATH=$(dirname "$pc") LD_LIBRARY_PATH="$libraries"
ask() { pkg-config --define-variable=prefix="$prefix" "$@" xtape; }

no_flags_leak() {
  local words
  words="$(ask --cflags) $(ask --static --libs) $(grep -h -v '^ *#' "$libraries"/cmake/xtape/*.cmake)"
  ! grep -E -e '-m(arch|avx|fma|tune)|XSIMD|xsimd|nlohmann|CLI11' <<<"$words" && ! grep -E '^Requires:.*(openblas|xsimd|sentencepiece|zlib)' "$pc"
}
with_pkg_config() { # with_pkg_config COMPILER_ARGUMENT…
  # shellcheck disable=SC2046
  g++ -Wall -Wextra -Wpedantic -Werror "$@" $(ask --cflags) "$source/tests/install/program.cpp" -o "$work/program" \
    $(ask --static --libs) && "$work/program"
}
with_cmake() {
  cmake -S "$source/tests/install/cmake" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$prefix" &&
    cmake --build "$work/cmake" && "$work/cmake/program"
}
as_subproject() {
  cp -r "$source/tests/install/subproject" "$work/outside" && cp "$source/tests/install/program.cpp" "$work/outside" &&
    mkdir "$work/outside/subprojects" && ln -s "$source" "$work/outside/subprojects/xtape" &&
    PKG_CONFIG_PATH= meson setup "$work/outside/build" "$work/outside" --force-fallback-for=xtape &&
    ninja -C "$work/outside/build" program && "$work/outside/build/program"
}
finds_models() { # the installed program, away from the sources
  (cd "$work" && [ -d "$prefix/share/xtape/models" ] && "$prefix/bin/xtape" --version | grep -q "^xtape [0-9]")
}

check "no compiler flags or private packages in xtape.pc and xtapeConfig.cmake" no_flags_leak
check "pkg-config, C++17" with_pkg_config -std=c++17
check "pkg-config, C++20" with_pkg_config -std=c++20
check "pkg-config, C++17, other array type: xsimd and -march=native" with_pkg_config -std=c++17 -march=native -DXTENSOR_USE_XSIMD
check "CMake find_package" with_cmake
check "Meson subproject, shared library, no -march=native" as_subproject
check "the program and its models" finds_models
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
