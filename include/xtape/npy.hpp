/// Reading arrays from .npy files, as numpy.save writes them.
#pragma once

#include <string>

#include "xtape/array.hpp"

namespace xtape {

/// The array of a .npy file, of format 1.0 to 3.0. Its elements are in C order and little-endian. Floats of 2, 4 and 8
/// bytes, integers of 4 and 8 bytes, int8 and bool keep their dtype; uint8, int16 and uint16 become int32, uint32
/// becomes int64. Throws FileError, which says what is wrong with the file or what to write
/// instead: another dtype, Fortran order, a damaged header, fewer or more bytes than the shape says. Nothing is
/// allocated for a shape before the file is known to have its bytes.
Array load_npy(const std::string& path);

}  // namespace xtape
