// The table of one instruction set. Compiled once for each; XTAPE_KERNELS is the table's name.
#include "kernels.hpp"

namespace xtape {

extern const Kernels XTAPE_KERNELS;
constinit const Kernels XTAPE_KERNELS{};

}  // namespace xtape
