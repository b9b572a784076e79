// Prints docs/reference/bits.md: what every processor with fused multiply-adds computes.
//
// usage: bits
#include <cstdio>
#include <iostream>

#include "kernels/table/kernels.hpp"
#include "op_digests.hpp"

using namespace xtape;

namespace {
constexpr const char* about = R"(# The bits of every op

Every processor with fused multiply-adds [computes these digests](../explanation/bits.md). A digest is that of all results of an op and of their
gradients, on made-up numbers of several kinds: of small arrays, and of larger ones, which fill several registers and leave parts of
others. An empty cell is a call that the op does not accept. An op that cannot keep the promise has the reason instead.

The suite `ops` compares the digests with those of the processor at hand. `build/tests/bits >docs/reference/bits.md` writes this page.
)";
}  // namespace

int main() {
  if (!kernels().fuses) {
    std::cerr << "bits: this processor has no fused multiply-adds, so its bits are its own\n";
    return 1;
  }
  std::cout << about << "\n| op |";
  for (const op_digests::Column& column : op_digests::columns) std::cout << ' ' << column.name << " |";
  std::cout << "\n|---|---|---|---|---|\n";
  for (const auto& entry : builtin_ops().ops()) {
    std::cout << '|';
    for (const std::string& cell : op_digests::row_of(*entry.second)) std::cout << ' ' << cell << " |";
    std::cout << std::endl;
  }
}
