#include "base/bytes/encodings.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>

#include "base/arrays/lengths.hpp"
#include "base/system/files.hpp"
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

namespace {
constexpr auto piece_bytes = static_cast<std::size_t>(checksum_piece);

/// The digest of parts, whose bytes are hashed piece by piece.
class PartDigests {
 public:
  explicit PartDigests(const std::vector<std::size_t>& lengths) {
    for (std::size_t part = 0; part < lengths.size(); ++part) {
      numbers_.push_back(canonical({lengths[part], 0}));
      for (std::size_t at = 0; at < lengths[part]; at += piece_bytes) {
        pieces_.push_back({part, at, std::min(piece_bytes, lengths[part] - at), numbers_.size()});
        numbers_.emplace_back();
      }
    }
  }
  struct Piece {
    std::size_t part, at, count, number;
  };
  const std::vector<Piece>& pieces() const { return pieces_; }
  void set(const Piece& piece, const void* bytes) {
    numbers_[piece.number] = canonical(XXH3_128bits(bytes, piece.count));
  }
  std::string text() const {
    const XXH128_canonical_t all = canonical(XXH3_128bits(numbers_.data(), numbers_.size() * sizeof numbers_[0]));
    std::string digits;
    for (const unsigned char byte : all.digest)
      for (const int digit : {byte >> 4, byte & 15}) digits += "0123456789abcdef"[digit];
    return digits;
  }

 private:
  static XXH128_canonical_t canonical(XXH128_hash_t hash) {
    XXH128_canonical_t bytes;
    XXH128_canonicalFromHash(&bytes, hash);
    return bytes;
  }
  std::vector<XXH128_canonical_t> numbers_;
  std::vector<Piece> pieces_;
};
}  // namespace

std::string digest_of(const std::vector<std::string_view>& parts, int threads) {
  std::vector<std::size_t> lengths;
  std::size_t bytes = 0;
  for (const std::string_view part : parts) bytes += lengths.emplace_back(part.size());
  PartDigests digests(lengths);
  const int team = bytes > piece_bytes ? thread_count(threads) : 1;
  parallel_for(team, std::ssize(digests.pieces()), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const PartDigests::Piece& piece = digests.pieces()[i];
      digests.set(piece, parts[piece.part].data() + piece.at);
    }
  });
  return digests.text();
}

std::string digest_of_file(const std::string& path) {
  const OpenFile file(path);
  PartDigests digests({static_cast<std::size_t>(file.size())});
  std::string bytes(std::min<std::size_t>(piece_bytes, file.size()), '\0');
  for (const PartDigests::Piece& piece : digests.pieces()) {
    file.read(piece.at, bytes.data(), piece.count);
    digests.set(piece, bytes.data());
  }
  return digests.text();
}

}  // namespace xtape
