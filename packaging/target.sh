# shellcheck shell=bash disable=SC2034
# For the scripts that source this file with their arguments, OUT [--try] [--processor aarch64]. Says what a package is for:
#   out, trying     the folder of the results, and whether to try them
#   processor       the one of this machine, or another, for which this machine compiles
#   suffix          of the names of folders
#   tools           how the names of the compiler and its tools begin
#   system          the folder of the libraries: empty for this machine
#   run             the words before a program of that processor
#   options         those of meson setup
# and builds static libraries of sentencepiece, which Debian lacks, in `made`, from the source in PyPI.
processor=$(uname -m) out='' trying='' suffix='' tools='' system='' run=() options=()
while [ $# -gt 0 ]; do
  case $1 in
    --try) trying=1 ;;
    --processor) processor=${2:-} && shift ;;
    *) out=$(mkdir -p "$1" && cd "$1" && pwd) ;;
  esac
  shift
done
[ -n "$out" ] || { echo "usage: bash packaging/$(basename "$0") OUT [--try] [--processor aarch64]" >&2 && exit 2; }
case $processor in
  "$(uname -m)") ;;
  aarch64)
    bash scripts/aarch64.sh setup
    suffix=-aarch64 tools=aarch64-linux-gnu- system=$PWD/build-aarch64/root run=(bash scripts/aarch64.sh run)
    options=(--cross-file build-aarch64/cross.ini) ;;
  *) echo "no cross compiler is known for '$processor': aarch64" >&2 && exit 2 ;;
esac

made=$PWD/build-sentencepiece$suffix
prefix=${system:+/opt/sentencepiece} # Meson looks for the libraries of another processor in their folder only
prefix=${prefix:-$made}
packages=$system$prefix/lib/pkgconfig
options+=(--pkg-config-path="$packages")
if [ ! -e "$packages/sentencepiece.pc" ]; then
  mkdir -p "$made"
  pip download -q --no-binary :all: --no-deps -d "$made" sentencepiece==0.2.0
  tar -xzf "$made/sentencepiece-0.2.0.tar.gz" -C "$made"
  cmake -S "$made/sentencepiece-0.2.0/sentencepiece" -B "$made/build" -DCMAKE_BUILD_TYPE=Release -DSPM_ENABLE_SHARED=OFF \
    -DSPM_ENABLE_TCMALLOC=OFF -DCMAKE_CXX_FLAGS=-w -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib \
    ${system:+-DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR="$processor" -DCMAKE_SYSROOT="$system"} \
    -DCMAKE_C_COMPILER="${tools}gcc" -DCMAKE_CXX_COMPILER="${tools}g++" >/dev/null
  cmake --build "$made/build" -j "$(nproc)" >/dev/null
  DESTDIR=$system cmake --install "$made/build" >/dev/null
  sed -i '/^Requires/d' "$packages/sentencepiece.pc"  # it contains what it needs of protobuf
fi
