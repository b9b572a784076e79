/// Golden values: what PyTorch computes, in small files of tests/golden beside the scripts that made them.
///
/// A file is {"cases": [case…]}, a case {"op", "attributes", "inputs", "outputs", "cotangents", "gradients"}:
/// the op's name and attributes as in a definition; arrays as {"dtype", "shape", "data"} with the elements row-major
/// (infinities and NaN as the strings "inf", "-inf", "nan"). "cotangents" has one array per output, or null where none
/// flows, "gradients" one per input, or null where none is compared; both may be missing.
#pragma once

#include <string>

namespace xtape {

/// Plays every case of tests/golden/`file` as an own test case does (CHECK), in the file's dtypes, and again in float32
/// where they are float64. Tolerances are |difference| <= tolerance * (1 + |golden|). Fails where the file has no case
/// of `op`; an empty `op` means all cases.
void check_golden(const std::string& file, const std::string& op, double tolerance64 = 1e-12,
                  double tolerance32 = 2e-5);

}  // namespace xtape
