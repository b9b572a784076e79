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

// Digests, which tell whether two machines have the same bytes. A digest has 32 hexadecimal digits: the XXH3-128 of the
// length of each part and the XXH3-128 values of its pieces of 1 MiB. Like every XXH3, it finds damage, and does not
// protect against a forger.

/// Returns the digest of several parts in memory, computed on `threads` threads (0: all).
std::string digest_of(const std::vector<std::string_view>& parts, int threads = 0);
/// Returns the digest of a file, which is that of its bytes as one part. Throws FileError as OpenFile does.
std::string digest_of_file(const std::string& path);

}  // namespace xtape
