/// For cases about the matrix unit.
#pragma once

#include "amx.hpp"
#include "needs.hpp"

namespace xtape {

inline Needs needs_matrix_unit() {
  return {amx::available(), "a processor with a matrix unit (AMX)"};
}

}  // namespace xtape
