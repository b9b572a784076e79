/// Checksums of arrays in files: the XXH3-64 of the XXH3-64s of their pieces of 1 MiB, each as 8 bytes with the lowest
/// first. Threads share the pieces, and any number of them finds the same checksum.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace xtape {

inline constexpr std::int64_t checksum_piece = 1 << 20;  ///< Bytes.

std::uint64_t checksum_of_piece(const void* bytes, std::size_t count);
std::uint64_t checksum_of_pieces(const std::vector<std::uint64_t>& checksums);
/// The checksum of an array that lies in memory.
std::uint64_t checksum_of(const void* bytes, std::size_t count);

}  // namespace xtape
