/// Graphs of one computation, written for several sizes.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "open_sizes.hpp"

namespace xtape::onnx {

constexpr std::size_t most_open_sizes = 4;
/// Three values of each open size.
using SizeValues = std::array<std::array<std::int64_t, 3>, most_open_sizes>;

/// A polynomial of the open sizes: the factor of each product of some of them, by the bits of their indices.
using Polynomial = Integers;

/// The graphs for all choices of the first or second value of each size, by the bits of the choices, and one for the
/// third values, which checks what the others say.
class Graphs {
 public:
  Graphs(const Names& open, const SizeValues& values, const std::function<WrittenGraph(const NamedSizes&)>& write);

  const WrittenGraph& first() const { return graphs_.front(); }
  const Names& open() const { return open_; }

  /// Throws Error unless the graphs have the same nodes and floats, initialisers of the same names, and inputs and
  /// outputs of the same ranks.
  void check_alike() const;

  /// What `number` gives for each graph, as a polynomial; nothing if it is none with integer factors.
  std::optional<Polynomial> polynomial(const std::function<std::int64_t(const WrittenGraph&)>& number) const;

  bool all(const std::function<bool(const WrittenGraph&)>& holds) const {
    return std::all_of(graphs_.begin(), graphs_.end(), holds);
  }

  /// Throws the error for an array that no polynomials give.
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
