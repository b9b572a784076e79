// The cases of tests/golden/data/many: at least 20 of each op, in the manner of PyTorch's OpInfo.
#include <doctest/doctest.h>

#include <string>

#include "golden.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"

using namespace xtape;

TEST_CASE("ops have PyTorch's values, first and second gradients") {
  for (const char* family : {"elementwise", "reductions", "shapes", "products", "losses", "windows"})
    check_golden(std::string("many/") + family + ".json", "", 1e-10, 0);
}
