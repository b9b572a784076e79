/// Large blocks of memory that all threads fill together.
#pragma once

#include <cstddef>
#include <string>

#include "base/files/files.hpp"
#include "xtape/array.hpp"

namespace xtape::onnx {

/// Like OpenFile::read.
void read_pieces(const OpenFile& file, std::uint64_t offset, void* to, std::size_t count);
/// Like std::memcpy.
void copy_pieces(void* to, const void* from, std::size_t count);
/// Returns the bytes of a file as int8, in memory on huge pages. Throws FileError as OpenFile does. Throws OutOfMemory
/// if the bytes and the arrays made from them do not fit.
Array file_bytes(const std::string& path);

}  // namespace xtape::onnx
