/// Golden values computed by PyTorch, in small files of tests/golden next to the scripts that made them.
///
/// A file is {"cases": [case…]}, a case {"op", "attributes", "inputs", "outputs", "cotangents", "gradients"}:
/// the op's name and attributes as in a definition; arrays as {"dtype", "shape", "data"} with the elements row-major
/// (infinities and NaN as the strings "inf", "-inf", "nan"). "cotangents" has one array per output, or null for no
/// cotangent; "gradients" has one per input, or null if it is not compared. Both may be missing. "second" has the
/// gradients of the sum of the products of "gradients" and "directions".
#pragma once

#include <map>
#include <string>

namespace xtape {

/// Plays and CHECKs every case of `op` in tests/golden/`file`, in the file's dtypes, and again in float32 if they are
/// float64. The tolerance is |difference| <= tolerance * (1 + |golden|). Fails if the file has no case of `op`; an
/// empty `op` means all cases. A tolerance32 of 0 leaves float32 out: for cases with numbers beyond its range.
void check_golden(const std::string& file, const std::string& op, double tolerance64 = 1e-12,
                  double tolerance32 = 2e-5);

/// Of each op, the number of cases in all files of tests/golden and tests/golden/many.
std::map<std::string, int> count_golden();

}  // namespace xtape
