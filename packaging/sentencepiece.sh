# shellcheck shell=bash
# For the scripts that source this file: builds static libraries of sentencepiece, which Debian lacks, in
# build-sentencepiece, from the source in PyPI. Its packages are found with --pkg-config-path="$sentencepiece".
made=$PWD/build-sentencepiece
sentencepiece=$made/lib/pkgconfig
if [ ! -e "$sentencepiece/sentencepiece.pc" ]; then
  mkdir -p "$made"
  pip download -q --no-binary :all: --no-deps -d "$made" sentencepiece==0.2.0
  tar -xzf "$made/sentencepiece-0.2.0.tar.gz" -C "$made"
  cmake -S "$made/sentencepiece-0.2.0/sentencepiece" -B "$made/build" -DCMAKE_BUILD_TYPE=Release -DSPM_ENABLE_SHARED=OFF \
    -DSPM_ENABLE_TCMALLOC=OFF -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DCMAKE_INSTALL_PREFIX="$made" \
    -DCMAKE_INSTALL_LIBDIR=lib >/dev/null
  cmake --build "$made/build" -j "$(nproc)" >/dev/null
  cmake --install "$made/build" >/dev/null
  sed -i '/^Requires/d' "$sentencepiece/sentencepiece.pc"  # it contains what it needs of protobuf
fi
