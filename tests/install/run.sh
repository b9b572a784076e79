#!/bin/bash
# Builds and runs external programs against the installed library in each documented way. The examples are built only
# here, without optimisation, since the library does the computation: all by CMake, with one precompiled header, and one
# of each library by pkg-config too, as its users do.
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

examples=$(basename -a -s .cpp "$source"/examples/*.cpp)
mpi=$(find "$build/src" -name libxtape-mpi.so)
[ -n "$mpi" ] || examples=$(grep -v train_distributed <<<"$examples")
onnx=$(find "$build/src" -name "libxtape-onnx.*")
[ -n "$onnx" ] || examples=$(grep -v finetune_onnx <<<"$examples")
each() { # each COMMAND EXAMPLE…: checks `COMMAND EXAMPLE` for every example, two at a time
  local command=$1 name
  shift
  for name in "$@"; do
    while [ "$(jobs -rp | wc -l)" -ge 2 ]; do wait -n; done
    { "$command" "$name" >"$work/$name.log" 2>&1; echo $? >"$work/$name.code"; } &
  done
  wait
  for name in "$@"; do check "$command $name" outcome "$name"; done
}
outcome() {
  cat "$work/$1.log"
  return "$(cat "$work/$1.code")"
}

meson install -C "$build" --no-rebuild --destdir "$work/root" >"$work/log" 2>&1 || {
  cat "$work/log"
  echo "0 passed, 1 failed"
  exit 1
}
# The following tests use the installation after it was moved to another folder.
installed=$(cd "$(dirname "$(find "$work/root" -name libxtape.a -o -name libxtape.so)")/.." && pwd)
while [ ! -d "$installed/include/xtape" ]; do installed=$(dirname "$installed"); done
prefix="$work/moved"
mv "$installed" "$prefix"
pc=$(find "$prefix" -name xtape.pc)
libraries=$(cd "$(dirname "$pc")/.." && pwd)
export PKG_CONFIG_PATH=$(dirname "$pc") LD_LIBRARY_PATH="$libraries"
ask() { pkg-config "$@" "${package:-xtape}"; }
XTAPE_MODELS=$(ask --variable=models)
export XTAPE_MODELS OMP_NUM_THREADS=1 CXXFLAGS=--param=ggc-min-heapsize=1048576  # compiles faster, as in meson.build

data_program() { # data_program NAME SOURCE…: builds and runs it without the library
  local name=$1
  shift
  (cd "$source/examples/data" && g++ -std=c++20 -Wall -Wextra -Wpedantic -Werror "$@" -o "$work/write_$name") &&
    "$work/write_$name" "$work/$name" 20000 200
}
no_flags_leak() {
  local words
  words="$(ask --cflags) $(ask --static --libs) $(grep -h -v '^ *#' "$libraries"/cmake/xtape/*.cmake)"
  ! grep -E -e '-m(arch|avx|fma|tune)|XSIMD|xsimd|nlohmann|CLI11' <<<"$words" && ! grep -E '^Requires:.*(xsimd|pcre2|png|sentencepiece|utf8proc|zlib)' "$pc"
}
only_places_in_the_folder() { # no file contains the original installation path
  ! grep -rn "${installed#"$work/root"}" "$pc" "$libraries/cmake/xtape" &&
    [ "$(realpath "$(ask --variable=prefix)")" = "$(realpath "$prefix")" ] && [ -f "$XTAPE_MODELS/gpt2.json" ]
}
no_xtensor_type_in_the_library() { # so that the compiler flags of the library and its user can differ
  ! nm -C "$libraries"/libxtape{,-core}.* | grep -E '^[^ ]* *[TWVu] xtape::.*\bxt::'
}
with_pkg_config() { # with_pkg_config SOURCE PROGRAM COMPILER_ARGUMENT…
  local from=$1 to=$2 beside=
  shift 2
  ! grep -q 'xtape/mpi.hpp' "$from" || beside=$(pkg-config --libs-only-l xtape-mpi)
  ! grep -q 'xtape/onnx.hpp' "$from" || beside=-lxtape-onnx
  # shellcheck disable=SC2046,SC2086
  g++ $CXXFLAGS -Wall -Wextra -Wpedantic -Werror "$@" $(ask --cflags) "$from" -o "$to" $beside $(ask --static --libs)
}
run() { # run DIRECTORY EXAMPLE: outside the source tree; training is just long enough for the loss to fall
  local arguments=()
  case $2 in
    mlp_csv) arguments=("$source/examples/data/iris.csv") ;;
    digits | vae) arguments=("$source/examples/data/digits.safetensors") ;;
    finetune_onnx) arguments=("$source/examples/data/digits."{onnx,safetensors} "$work/tuned.onnx") ;;
    train_gpt2) arguments=("$source/README.md" 30) ;;
    train_transformer) arguments=("$work/number_words" 100) ;;
    train_seq2seq) arguments=("$work/dates" 100) ;;
  esac
  (cd "$work" && "$1/$2" "${arguments[@]}" >"$1/$2.out") && python3 -B "$source/tests/install/expected.py" "$2" <"$1/$2.out"
}
by_pkg_config() {
  with_pkg_config "$source/examples/$1.cpp" "$work/$1" -std=c++17 && run "$work" "$1"
}
by_cmake() { run "$work/cmake" "$1"; }
cmake_builds() {
  cmake -S "$source/tests/install/cmake" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$prefix" -DEXAMPLES="$source/examples" \
    -DXTAPE_VERSION="$(ask --modversion | cut -d. -f1,2)" &&
    cmake --build "$work/cmake" -j2
}
program() {
  with_pkg_config "$source/tests/install/program.cpp" "$work/program" -std=c++20 -march=native -DXTENSOR_USE_XSIMD &&
    "$work/program"
}
core_program() { # a program of 30 lines that trains, built as xtape-core.pc says
  local package=xtape-core source=$source/tests/install/core_program.cpp program=$work/core_program
  # shellcheck disable=SC2046
  ! g++ -std=c++17 $(ask --cflags) -M "$source" | grep -E 'xtensor|nlohmann' &&
    with_pkg_config "$source" "$program" -std=c++17 -O1 -s && "$program" &&
    ! ldd "$program" | grep -E 'blas|lapack|gomp|sentencepiece|pcre|libz\.' && [ "$(stat -Lc %s "$program")" -le 6000000 ]
}
onnx_program() { # built by pkg-config and by CMake, where xtape-onnx is installed
  local package=xtape-onnx source=$source/tests/install/onnx_program.cpp model=$source/tests/fuzz/corpus/onnx/product
  with_pkg_config "$source" "$work/onnx_program" -std=c++17 -O1 && "$work/onnx_program" "$model" &&
    ! ldd "$work/onnx_program" | grep -E 'sentencepiece|pcre|protobuf' && "$work/cmake/onnx_program" "$model"
}
c_program() { # in C, built by pkg-config and a C compiler alone; it has one library of xtape
  local package=xtape-c program=$work/c_program
  # shellcheck disable=SC2046
  cc -std=c11 -Wall -Wextra -Wpedantic -Werror $(ask --cflags) "$source/tests/install/c_program.c" -o "$program" $(ask --libs) &&
    "$program" | grep -F '"shape":[1,3,11]' && [ -f "$prefix/share/xtape/python/xtape.py" ] &&
    [ -f "$prefix/share/xtape/fortran/xtape.f90" ] && "$work/cmake/c_program" >"$work/c_program.out"
}
as_subproject() { # checks that all can be built; building it would compile the library once more
  cp -r "$source/tests/install/subproject" "$work/outside" && cp "$source/tests/install/program.cpp" "$work/outside" &&
    mkdir "$work/outside/subprojects" && ln -s "$source" "$work/outside/subprojects/xtape" &&
    PKG_CONFIG_PATH= meson setup "$work/outside/build" "$work/outside" --force-fallback-for=xtape &&
    ninja -C "$work/outside/build" -n -v program >"$work/outside/commands" &&
    grep -q -e "-o program .*libxtape\.so" "$work/outside/commands" && grep -q -e "-march=native" "$work/outside/commands"
}
finds_models() ( # the program that was moved, outside the source tree, and that of the build tree
  cd "$work" && unset XTAPE_MODELS && "$prefix/bin/xtape" --version | grep -q "^xtape [0-9]" &&
    [ -s "$prefix/share/man/man1/xtape.1" ] && [ -s "$prefix/share/bash-completion/completions/xtape.bash" ] &&
    [ -s "$prefix/share/zsh/site-functions/_xtape" ] && [ -s "$prefix/share/fish/vendor_completions.d/xtape.fish" ] &&
    "$prefix/bin/xtape" show gru_attention && "$build/src/cli/xtape" show gru_attention
)

check "no compiler flags or private packages in xtape.pc and xtapeConfig.cmake" no_flags_leak
check "xtape.pc and xtapeConfig.cmake after the folder has moved" only_places_in_the_folder
check "no function of the library takes or gives an xtensor type" no_xtensor_type_in_the_library
check "data: number words" data_program number_words number_words.cpp
check "data: dates" data_program dates dates.cpp date_forms.cpp date_languages.cpp
check "data: sums" bash -c 'cd "$0/examples/data" && g++ -std=c++20 -Wall -Werror sums.cpp -o "$1/sums" && "$1/sums" "$1/sums_data"' "$source" "$work"
check "xtape-core: no xtensor in headers, no library of matrices or texts, at most 6 MB" core_program
check "pkg-config, C++20, other array type: xsimd and -march=native" program
# shellcheck disable=SC2086
each by_pkg_config linear_regression ${onnx:+finetune_onnx} ${mpi:+train_distributed}
check "CMake find_package" cmake_builds
# shellcheck disable=SC2086
each by_cmake $examples
[ ! -f "$(dirname "$pc")/xtape-onnx.pc" ] || check "xtape-onnx: a model from a file" onnx_program
[ ! -f "$(dirname "$pc")/xtape-c.pc" ] || check "xtape-c: a program in C" c_program
check "Meson subproject, shared library, kernels for this machine only" as_subproject
refuses_another_standard() {
  ! meson setup "$work/older" "$source" -Dcpp_std=c++17 >"$work/older.out" && grep -q "set -Dcpp_std=c++20" "$work/older.out"
}
check "a build as C++17 ends with a sentence" refuses_another_standard
library_has_no_mpi() { # a program that uses the library xtape alone
  [ -x "$work/linear_regression" ] && ! ldd "$work/linear_regression" | grep -i -E 'mpi|pmix'
}
on_ranks() { # the same loss on one and two ranks
  local alone
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  alone=$("$work/train_distributed" "$source/README.md" 10 | tail -n 1) &&
    [ "${alone% on 1 ranks}" != "$alone" ] &&
    [ "$(mpirun --oversubscribe -n 2 "$work/train_distributed" "$source/README.md" 10 | tail -n 1)" = \
      "${alone% on 1 ranks} on 2 ranks" ]
}
check "a program linked to the library does not depend on MPI" library_has_no_mpi
[ -z "$mpi" ] || check "train_distributed on two ranks" on_ranks
check "the program finds its models beside itself" finds_models
clear_errors() { # one line for a file that is not there, and for a wrong number of arguments
  local name message
  for name in digits vae mlp_csv train_gpt2 train_transformer train_seq2seq; do
    message=$("$work/cmake/$name" /none 2>&1)
    [ $? = 1 ] && [ "$(wc -l <<<"$message")" = 1 ] && grep "/none" <<<"$message" || return 1
    message=$("$work/cmake/$name" 1 2 3 2>&1)
    [ $? = 1 ] && [ "$(wc -l <<<"$message")" = 1 ] && grep "usage: $name" <<<"$message" || return 1
  done
}
gallery() { # the commands of examples/README.md
  EXAMPLES=$work/cmake python3 "$source/tests/docs/run.py" "$build/src/cli/xtape" "$source" "$build" examples/README.md
}
check "examples end with one line where they are used wrongly" clear_errors
check "examples/README.md" gallery
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
