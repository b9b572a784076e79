/// Golden values computed by PyTorch. They are in small files of tests/golden, next to the scripts that made them.
///
/// A file is {"cases": [case…]}. A case is {"op", "attributes", "inputs", "outputs", "cotangents", "gradients"}. The
/// op's name and attributes are written as in a definition. Arrays are {"dtype", "shape", "data"} with row-major
/// elements; infinities and NaN are the strings "inf", "-inf" and "nan". "cotangents" has one array per output, or null
/// for no cotangent. "gradients" has one array per input, or null if it is not compared. Both may be missing. "second"
/// has the gradients of the sum of the products of "gradients" and "directions".
#pragma once

#include <map>
#include <string>

namespace xtape {

/// Plays and CHECKs every case of `op` in tests/golden/data/`file` in the dtypes of the file. Repeats float64 cases in
/// float32. The tolerance is |difference| <= tolerance * (1 + |golden|). Fails if the file has no case of `op`. An
/// empty `op` means all cases. A tolerance32 of 0 skips float32, for cases with numbers beyond the range of float32.
void check_golden(const std::string& file, const std::string& op, double tolerance64 = 1e-12,
                  double tolerance32 = 2e-5);

/// Returns, for each op, the number of cases in all files of tests/golden/data and its folder many.
std::map<std::string, int> count_golden();

}  // namespace xtape
