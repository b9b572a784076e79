#!/bin/bash
# Builds one program without shared libraries, and packs it with its models, so that it runs on every Linux of a processor:
#   xtape-VERSION-linux-PROCESSOR.tar.xz   bin/xtape, scripts/demo.sh, and in share: models, licences, manual page, completion of shells
# With --try, also unpacks it in a folder with nothing but busybox, and uses it there. With --processor aarch64, cross-compiles
# it, and tries it under QEMU (scripts/aarch64.sh).
#
# usage: bash packaging/static.sh OUT [--try] [--processor aarch64]
set -euo pipefail
cd "$(dirname "$0")/.."
. packaging/target.sh
work=build-static$suffix
[ -e $work/build.ninja ] || bash scripts/configure.sh $work -Dtests=false -Dmpi=disabled -Dc=disabled -Dprefer_static=true \
  -Dcpp_link_args=-static -Dprefix=/usr "${options[@]}"
bash scripts/build.sh $work src/cli/xtape examples/data/number_words

version=$(sed -n "s/^project.* version: '\([^']*\)'.*/\1/p" meson.build)
name=xtape-$version-linux-$processor
root=$work/$name
rm -rf "$root"
mkdir -p "$root/bin" "$root/share/xtape" "$root/share/doc/xtape/libraries"
"${tools}strip" -o "$root/bin/xtape" $work/src/cli/xtape
cp -r models "$root/share/xtape/models"
mkdir "$root/scripts"
cp scripts/demo.sh "$root/scripts"
"${tools}strip" -o "$root/share/xtape/number_words" $work/examples/data/number_words
while read -r shell file; do
  mkdir -p "$(dirname "$root/share/$file")"
  "${run[@]}" "$root/bin/xtape" completion "$shell" >"$root/share/$file"
done <<'FILES'
bash bash-completion/completions/xtape.bash
zsh zsh/site-functions/_xtape
fish fish/vendor_completions.d/xtape.fish
man man/man1/xtape.1
FILES
cp README.md LICENSE "$root/share/doc/xtape"
# The licences of what the program contains.
for package in libpcre2-dev libutf8proc-dev libpng-dev libjpeg62-turbo-dev zlib1g-dev nlohmann-json3-dev libxsimd-dev \
  libcli11-dev libxxhash-dev libprotozero-dev libc6-dev libstdc++-12-dev; do
  [ ! -e "/usr/share/doc/$package/copyright" ] || cp -L "/usr/share/doc/$package/copyright" "$root/share/doc/xtape/libraries/$package"
done
cp "$made/sentencepiece-0.2.0/sentencepiece/LICENSE" "$root/share/doc/xtape/libraries/sentencepiece"
tar -C $work --owner=0 --group=0 -cJf "$out/$name.tar.xz" "$name"
echo "$out/$name.tar.xz: $(stat -c %s "$out/$name.tar.xz") bytes, of the program $(stat -c %s "$root/bin/xtape")"
[ "$(stat -c %s "$root/bin/xtape")" -le 20000000 ] || { echo "the program has more than 20 MB" >&2 && exit 1; }
[ -z "$trying" ] || bash packaging/try_static.sh "$out/$name.tar.xz"
