// Every op has the bits that all processors with fused multiply-adds share. The table is docs/reference/bits.md.
#include <doctest/doctest.h>

#include <bit>
#include <fstream>
#include <map>
#include <sstream>

#include "needs_instructions.hpp"
#include "op_digests.hpp"
#include "source_root.hpp"

using namespace xtape;

namespace {
/// The cells of the table's rows, by their first cell.
std::map<std::string, std::vector<std::string>> shared_rows() {
  std::map<std::string, std::vector<std::string>> rows;
  std::ifstream page(source_root() + "/docs/reference/bits.md");
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("| `")) continue;
    std::vector<std::string> cells;
    std::istringstream parts(line.substr(1));
    for (std::string cell; std::getline(parts, cell, '|');) {
      const std::size_t first = cell.find_first_not_of(' ');
      cells.push_back(first == std::string::npos ? "" : cell.substr(first, cell.find_last_not_of(' ') + 1 - first));
    }
    rows[cells[0]] = cells;
  }
  return rows;
}
}  // namespace

TEST_CASE("every op has the bits of docs/reference/bits.md, in float32 and float64, with its gradients" *
          needs_fused()) {
  const auto shared = shared_rows();
  CHECK(shared.size() == builtin_ops().ops().size());
  for (const auto& entry : builtin_ops().ops()) {
    const std::vector<std::string> found = op_digests::row_of(*entry.second);
    const auto row = shared.find(found[0]);
    CHECK_MESSAGE(row != shared.end(), found[0] << " has no row: build/tests/bits >docs/reference/bits.md");
    if (row == shared.end() || row->second == found) continue;
    for (std::size_t i = 0; i < op_digests::columns.size(); ++i) {
      const std::string where = found[0] + ", " + op_digests::columns[i].name;
      CHECK_MESSAGE(found[i + 1] == row->second[i + 1],
                    where << ": this processor computes " << found[i + 1] << ", and others " << row->second[i + 1]);
    }
  }
}

TEST_CASE("a digest depends on every bit, on the sign of 0, and not on that of NaN") {
  const auto of = [](std::uint64_t bits) {
    const double number = std::bit_cast<double>(bits);
    Array array(Dtype::float64, {2});
    array.as<double>()[1] = number;
    return op_digests::digest_of(array);
  };
  CHECK(of(0x3ff0000000000000) != of(0x3ff0000000000001));
  CHECK(of(0) != of(0x8000000000000000));
  CHECK(of(0x7ff8000000000000) == of(0xfff8000000000001));
}
