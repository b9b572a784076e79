/// Reads arrays from .npy files, the format of numpy.save.
#pragma once

#include <string>

#include "xtape/array.hpp"

namespace xtape {

/// Reads a .npy file of format 1.0 to 3.0 with elements in C order and little-endian. Floats of 2, 4 and 8 bytes,
/// integers of 4 and 8 bytes, int8 and bool keep their dtype. uint8, int16 and uint16 become int32. uint32 becomes
/// int64. Throws FileError if the file is damaged, has another dtype or Fortran order, or has fewer or more bytes than
/// its shape requires. The message says what is wrong, or what to write instead. Checks that the file has the bytes of
/// its shape before it allocates memory.
Array load_npy(const std::string& path);

}  // namespace xtape
