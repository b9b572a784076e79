#!/bin/bash
# Builds one program without shared libraries, and packs it with its models, so that it runs on every Linux:
#   xtape-VERSION-linux-PROCESSOR.tar.xz   bin/xtape, share/xtape/models, share/doc/xtape
# With --try, also unpacks it in a folder with nothing but busybox, and uses it there (as root, by chroot).
#
# usage: bash packaging/static.sh OUT [--try]
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(mkdir -p "$1" && cd "$1" && pwd)
work=build-static

# Debian has no static library of sentencepiece. Its source comes from PyPI.
sentencepiece=$PWD/$work-sentencepiece
if [ ! -e "$sentencepiece/lib/pkgconfig/sentencepiece.pc" ]; then
  mkdir -p "$sentencepiece"
  pip download -q --no-binary :all: --no-deps -d "$sentencepiece" sentencepiece==0.2.0
  tar -xzf "$sentencepiece"/sentencepiece-0.2.0.tar.gz -C "$sentencepiece"
  cmake -S "$sentencepiece/sentencepiece-0.2.0/sentencepiece" -B "$sentencepiece/build" -DCMAKE_BUILD_TYPE=Release \
    -DSPM_ENABLE_SHARED=OFF -DSPM_ENABLE_TCMALLOC=OFF -DCMAKE_INSTALL_PREFIX="$sentencepiece" \
    -DCMAKE_INSTALL_LIBDIR=lib >/dev/null
  cmake --build "$sentencepiece/build" -j "$(nproc)" >/dev/null
  cmake --install "$sentencepiece/build" >/dev/null
  sed -i '/^Requires/d' "$sentencepiece/lib/pkgconfig/sentencepiece.pc"  # it has its own protobuf
fi

[ -e $work/build.ninja ] || bash scripts/configure.sh $work -Dtests=false -Dmpi=disabled -Dprefer_static=true \
  -Dcpp_link_args=-static -Dprefix=/usr --pkg-config-path="$sentencepiece/lib/pkgconfig"
bash scripts/build.sh $work src/cli/xtape

version=$(sed -n "s/^project.* version: '\([^']*\)'.*/\1/p" meson.build)
name=xtape-$version-linux-$(uname -m)
root=$work/$name
rm -rf "$root"
mkdir -p "$root/bin" "$root/share/xtape" "$root/share/doc/xtape/libraries"
strip -o "$root/bin/xtape" $work/src/cli/xtape
cp -r models "$root/share/xtape/models"
cp README.md LICENSE "$root/share/doc/xtape"
# The licences of what the program contains.
for package in libpcre2-dev libutf8proc-dev libpng-dev libjpeg62-turbo-dev zlib1g-dev nlohmann-json3-dev libxsimd-dev \
  libcli11-dev libxxhash-dev libprotozero-dev libc6-dev libstdc++-12-dev; do
  [ ! -e "/usr/share/doc/$package/copyright" ] || cp -L "/usr/share/doc/$package/copyright" "$root/share/doc/xtape/libraries/$package"
done
cp "$sentencepiece/sentencepiece-0.2.0/sentencepiece/LICENSE" "$root/share/doc/xtape/libraries/sentencepiece"
tar -C $work -cJf "$out/$name.tar.xz" "$name"
echo "$out/$name.tar.xz: $(stat -c %s "$out/$name.tar.xz") bytes, of the program $(stat -c %s "$root/bin/xtape")"
[ "$(stat -c %s "$root/bin/xtape")" -le 20000000 ] || { echo "the program has more than 20 MB" >&2 && exit 1; }
[ "${2:-}" != --try ] || bash packaging/try_static.sh "$out/$name.tar.xz"
