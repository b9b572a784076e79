/// Bytes as text, and checksums of arrays in files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace xtape {

// Bytes as text, as defined in RFC 4648 (base64 with padding).

std::string to_base64(std::string_view bytes);
/// Returns nothing if the text is not base64.
std::optional<std::string> from_base64(std::string_view text);

// Checksums of arrays in files. An array is divided into pieces of 1 MiB. Its checksum is the XXH3-64 of the XXH3-64
// values of the pieces, each as 8 bytes in little-endian order. The result does not depend on the number of threads.

inline constexpr std::int64_t checksum_piece = 1 << 20;  ///< Bytes.

std::uint64_t checksum_of_piece(const void* bytes, std::size_t count);
std::uint64_t checksum_of_pieces(const std::vector<std::uint64_t>& checksums);
/// Returns the checksum of `count` bytes in memory, computed on all threads.
std::uint64_t checksum_of(const void* bytes, std::size_t count);
/// Like checksum_of above, on `threads` threads. Does not allocate if `pieces` has the capacity for the checksums of
/// all pieces.
std::uint64_t checksum_of(const void* bytes, std::size_t count, int threads, std::vector<std::uint64_t>& pieces);

}  // namespace xtape
