/// Large pieces of memory, filled by all threads.
#pragma once

#include <cstddef>
#include <string>

#include "files.hpp"
#include "xtape/array.hpp"

namespace xtape::onnx {

/// As OpenFile::read.
void read_pieces(const OpenFile& file, std::uint64_t offset, void* to, std::size_t count);
/// As std::memcpy.
void copy_pieces(void* to, const void* from, std::size_t count);
/// The bytes of a file, as int8: its memory has huge pages. Throws FileError as OpenFile does, OutOfMemory if they, and
/// their arrays, do not fit.
Array file_bytes(const std::string& path);

}  // namespace xtape::onnx
