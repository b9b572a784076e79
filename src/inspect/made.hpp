/// Which elements calls make NaN or infinite, and which they only pass on.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "finite.hpp"
#include "node_by_node.hpp"

namespace xtape {

/// Numbers that are not finite are judged apart: a -inf of a mask does not explain an overflow.
enum class Kind : std::uint8_t { finite, nan, inf, minus_inf };
const char* name_of(Kind kind);  ///< "finite", "NaN", "inf", "-inf".
Kind kind_of(double number);

/// The kinds of the elements of several arrays, in row-major order; empty for an array whose elements are all finite.
using Kinds = std::vector<std::vector<Kind>>;
Kinds kinds_of(const std::vector<Array>& arrays);
bool all_finite(const Kinds& kinds);
/// The first element that is NaN, or else inf, or else -inf.
struct MarkedElement {
  std::size_t array = 0;
  std::int64_t element = 0;
  Kind kind = Kind::finite;
};
std::optional<MarkedElement> worst_of(const Kinds& kinds);

/// What an infinity is that comes from one of the other sign, as in -x and abs(x): a loss of inf because of a -inf that
/// masks the target, or a value in a guard that reaches nothing.
enum class Flips : std::uint8_t { made, passed_on };

/// The elements of `outputs` that the node makes NaN or infinite; the others are finite in the result. An element is
/// made if it stays what it is when ones take the place of the operands' elements of its kind and of NaN.
Kinds made_by_call(const NodeByNode& plays, const Node& node, const std::vector<Array>& operands,
                   const std::vector<Array>& outputs, Flips flips);

/// The same for a source. Its infinities are meant in constants, and in masks: arrays of zeros and infinities of one
/// sign.
Kinds made_by_source(const Node& node, const Array& array);

/// Puts ones in place of the marked elements, in new arrays.
void mend(std::vector<Array>& arrays, const Kinds& marked);

}  // namespace xtape
