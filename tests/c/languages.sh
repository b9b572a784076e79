#!/bin/bash
# Programs in other languages, by the C interface: those of examples/languages, with the library of the build.
# usage: languages.sh SOURCE_ROOT LIBRARY_FOLDER
set -uo pipefail
source=$1
export LD_LIBRARY_PATH=$2 XTAPE_LIBRARY=$2/libxtape-c.so XTAPE_MODELS=$source/models OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export PYTHONPATH=$work:$source/packaging/python
# Importing PyTorch takes longer than all else, so its part of train.py runs only where XTAPE_TEST_TORCH is set.
[ -n "${XTAPE_TEST_TORCH:-}" ] || echo 'raise ImportError("left out by languages.sh")' >torch.py
passed=0
failed=0
skipped=0

check() { # check NAME COMMAND…: counts the command's success
  local name=$1
  shift
  if "$@" >log 2>&1; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $name"
    tail -n 20 log
  fi
}
lacks() {
  skipped=$((skipped + 1))
  echo "SKIPPED: $1"
}

c() {
  cc -std=c11 -Wall -Wextra -Wpedantic -Werror -I"$source/include" "$source/examples/languages/train.c" -L"$LD_LIBRARY_PATH" \
    -lxtape-c -lm -o train && ./train && [ -s sine.safetensors ]
}
cpp() { # the header is C++, too
  echo 'int main() { return xtape_version()[0] == 0; }' |
    g++ -std=c++17 -Wall -Wextra -Wpedantic -Werror -I"$source/include" -include xtape.h -x c++ - -L"$LD_LIBRARY_PATH" -lxtape-c -o cpp &&
    ./cpp
}
fortran() { # fortran SOURCE
  gfortran -std=f2018 -Wall -Wextra -Werror "$source/packaging/fortran/xtape.f90" "$source/$1" -L"$LD_LIBRARY_PATH" -lxtape-c \
    -o fortran && ./fortran
}
rust() {
  rustc --edition 2021 -D warnings "$source/examples/languages/slope.rs" -L "$LD_LIBRARY_PATH" -l xtape-c -o slope && ./slope
}

check "C" c
check "C++" cpp
check "the Fortran module has the functions of xtape.h" python3 "$source/packaging/fortran/bindings.py" --check
if command -v gfortran >/dev/null; then
  check "Fortran" fortran examples/languages/pendulum.f90
  check "Fortran without optional arguments" fortran tests/c/optional.f90
else
  lacks "gfortran is not installed"
fi
if command -v rustc >/dev/null; then check "Rust" rust; else lacks "rustc is not installed"; fi
if python3 -c "import numpy" 2>/dev/null; then
  check "Python" python3 "$source/examples/languages/train.py"
  check "xtape.py" python3 "$source/tests/c/python.py" "$source"
else
  lacks "NumPy is not installed"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
