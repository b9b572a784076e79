/// Arrays in .npz files, which are ZIP archives of .npy files.
#pragma once

#include <string>
#include <vector>

#include "xtape/array.hpp"

namespace xtape {

/// The array of this name, as numpy.savez or numpy.savez_compressed writes it, of a file of less than 4 GiB. Throws
/// FileError, which names the file and says what is wrong with it or, if it has no such array, which it has; and what
/// load_npy throws of the array.
Array read_npz(const std::string& path, const std::string& name);
/// The names of the arrays of such a file. Throws FileError in the same way.
std::vector<std::string> npz_names(const std::string& path);

}  // namespace xtape
