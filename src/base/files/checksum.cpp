#include "base/files/encodings.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory/lengths.hpp"
#include "base/threads/threads.hpp"

namespace xtape {

std::uint64_t checksum_of_piece(const void* bytes, std::size_t count) {
  return XXH3_64bits(bytes, count);
}

std::uint64_t checksum_of_pieces(const std::vector<std::uint64_t>& checksums) {
  return XXH3_64bits(checksums.data(), checksums.size() * sizeof(std::uint64_t));
}

std::uint64_t checksum_of(const void* bytes, std::size_t count, int threads, std::vector<std::uint64_t>& pieces) {
  const auto size = static_cast<std::int64_t>(count);
  pieces.resize(static_cast<std::size_t>(ceiling(size, checksum_piece)));
  parallel_for(threads, size, checksum_piece, [&](std::int64_t begin, std::int64_t finish) {
    for (std::int64_t at = begin; at < finish; at += checksum_piece)
      pieces[at / checksum_piece] = checksum_of_piece(static_cast<const std::byte*>(bytes) + at,
                                                      static_cast<std::size_t>(std::min(checksum_piece, finish - at)));
  });
  return checksum_of_pieces(pieces);
}

std::uint64_t checksum_of(const void* bytes, std::size_t count) {
  std::vector<std::uint64_t> pieces;
  return checksum_of(bytes, count, thread_count(), pieces);
}

}  // namespace xtape
