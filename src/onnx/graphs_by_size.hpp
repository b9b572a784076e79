/// The graphs of one computation, written for several sizes.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "onnx/writing.hpp"

namespace xtape::onnx {

constexpr std::size_t most_open_sizes = 4;
/// Three values for each dynamic dimension.
using SizeValues = std::array<std::array<std::int64_t, 3>, most_open_sizes>;

/// A multilinear polynomial of the dynamic dimensions. Element i is the coefficient of the product of the dimensions
/// whose bits are set in i.
using Polynomial = Integers;

/// The graphs of one computation for several values of the dynamic dimensions. Each dimension has its first value if
/// its bit in the index of the graph is 0, and its second value if the bit is 1. The last graph has the third values of
/// all dimensions, and checks the result.
class Graphs {
 public:
  Graphs(const Names& open, const SizeValues& values, const std::function<WrittenGraph(const NamedSizes&)>& write);

  const WrittenGraph& first() const { return graphs_.front(); }
  const Names& open() const { return open_; }

  /// Throws Error if the graphs do not have the same nodes, the same floats, initialisers with the same names, and
  /// inputs and outputs of the same ranks.
  void check_alike() const;

  /// Returns a polynomial of the dynamic dimensions whose value is number(graph) for every graph. Returns nothing if no
  /// polynomial with integer coefficients has these values.
  std::optional<Polynomial> polynomial(const std::function<std::int64_t(const WrittenGraph&)>& number) const;

  bool all(const std::function<bool(const WrittenGraph&)>& holds) const { return std::ranges::all_of(graphs_, holds); }

  /// Throws the error for an array whose elements are not polynomials of the dynamic dimensions.
  [[noreturn]] void refuse_array(std::size_t index) const;

  static bool same_elements(const Array& a, const Array& b) {
    return a.dtype() == b.dtype() && a.shape() == b.shape() &&
           (a.data() == b.data() || std::memcmp(a.data(), b.data(), a.bytes()) == 0);
  }

 private:
  std::string reader_of(const std::string& value) const;
  [[noreturn]] void refuse(std::size_t graph, const std::string& node) const;

  const Names& open_;
  const SizeValues& values_;
  std::vector<WrittenGraph> graphs_;
};

}  // namespace xtape::onnx
