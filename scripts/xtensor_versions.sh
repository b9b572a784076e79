#!/bin/bash
# Builds everything with other versions of xtensor, each installed in a folder of its own with its version of xtl, and
# runs the suites that use xtensor. The program must be the same, byte for byte, as with the installed version: no
# source of the library includes xtensor. The last line is "N passed, N failed".
# usage: xtensor_versions.sh PREFIX…
set -uo pipefail
cd "$(dirname "$0")/.."
suites=base,faults,golden,grad,inspect,model,ops,outside,player,recording,rewrite,tape,tapes,decode,data,optim,ranks,train

bash scripts/setup.sh && bash scripts/build.sh build src/cli/xtape || exit 1
reports=()
failed=0
for prefix in "$@"; do
  prefix=$(realpath "$prefix")
  version=$(PKG_CONFIG_PATH=$prefix/share/pkgconfig pkg-config --modversion xtensor) || exit 1
  directory=build-xtensor-$version
  echo "xtensor $version"
  bash scripts/configure.sh "$directory" -Dpkg_config_path="$prefix/share/pkgconfig" && bash scripts/build.sh "$directory" || exit 1
  if cmp build/src/cli/xtape "$directory/src/cli/xtape"; then echo "the program is the same"; else failed=$((failed + 1)); fi
  reports+=("$directory:$suites")
done
python3 tests/run.py "${reports[@]}" && [ "$failed" = 0 ]
