/// Finds the node of a program that fails, and the values that caused the failure.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/arrays/elements.hpp"
#include "inspect/node_by_node.hpp"
#include "xtape/inspect.hpp"

namespace xtape {

// The elements that calls make NaN or infinite. A call makes an element if NaN and infinities in its operands and
// literals do not explain the element. Otherwise the call only passes the element on.

/// Numbers that are not finite are judged by kind. A -inf of a mask does not explain an overflow to inf.
enum class Kind : std::uint8_t { finite, nan, inf, minus_inf };
const char* name_of(Kind kind);  ///< "finite", "NaN", "inf", "-inf".
Kind kind_of(double number);

/// The kinds of the elements of several arrays, in row-major order. The list is empty for an array whose elements are
/// all finite.
using Kinds = std::vector<std::vector<Kind>>;
Kinds kinds_of(const std::vector<Array>& arrays);
bool all_finite(const Kinds& kinds);
/// The position of an element in several arrays, and its kind.
struct MarkedElement {
  std::size_t array = 0;
  std::int64_t element = 0;
  Kind kind = Kind::finite;
};
/// Returns the first NaN. If there is no NaN, returns the first inf. If there is no inf either, returns the first -inf.
std::optional<MarkedElement> worst_of(const Kinds& kinds);

/// How to judge an infinity that a call computes from an infinity of the other sign, as -x and abs(x) do. The call
/// either makes the new infinity or passes it on. `made` suits a loss of inf that comes from a -inf in a mask of the
/// target. `passed_on` suits a guard value that does not reach the output.
enum class Flips : std::uint8_t { made, passed_on };

/// Returns the kinds of the elements of `outputs` that the node makes NaN or infinite. All other elements have the kind
/// `finite` in the result. For each kind, the function replaces NaN and the elements of this kind in operands and
/// literals by ones, and plays the node again. The node makes those output elements that keep this kind.
Kinds made_by_call(const NodeByNode& plays, const Node& node, const std::vector<Array>& operands,
                   const std::vector<Array>& outputs, Flips flips);

/// Like made_by_call, for a source. Infinities in constants and in masks (arrays of zeros and infinities of one sign)
/// are intended and do not count.
Kinds made_by_source(const Node& node, const Array& array);

/// Replaces the marked elements by ones, in new arrays.
void mend(std::vector<Array>& arrays, const Kinds& marked);

// The node that fails, and the causes.

/// The node that makes a program fail.
struct FailingNode {
  std::int32_t node = -1;
  std::string error = "";  ///< The error that its kernel throws, or "" if the kernel throws none.
  /// Used if no call makes NaN or infinities (see made_by_call), but sources or literals contain them. `node` is then
  /// an output of the program that is not finite, and `chain` has the nodes that pass the NaN or infinities on to this
  /// output.
  std::set<std::int32_t> chain = {};
};
/// Returns the first node that alone makes the program fail: the program still fails if ones replace the NaN and
/// infinities that all other nodes make (see made_by_call). If there is no such node and an output is not finite,
/// returns the node of the first such output with its `chain`. If `given` is true, the program is the body of a call,
/// and its parameters are the operands of this call. NaN and infinities in a parameter then do not count as made by the
/// parameter.
std::optional<FailingNode> failing_node(const NodeByNode& plays, bool given = false);

/// A value that made a node fail, and the node that reads this value.
struct CausingValue {
  ValueId value;
  std::int32_t user = -1;
  std::vector<std::int64_t> element;  ///< The index of the first element that alone makes the node fail, or empty.
};
/// The causes of a failure. `values` are the values that made the node fail. They go from an operand of the node back
/// to a source or to a value in the usual range. `arrays` has all operands of the nodes that read these values.
struct Causes {
  std::vector<CausingValue> values;
  NodeByNode::Values arrays;
  std::vector<Array> outputs;  ///< The outputs of the failing node. Empty if the node throws.
  Kinds failures;              ///< The kinds of the failing elements of `outputs`.
};
Causes causes_of(const NodeByNode& plays, const FailingNode& failing);

/// Whether an array of this shape has an element with this index.
bool has_element(const Shape& shape, const std::vector<std::int64_t>& index);
/// Returns the output to which the failing element belongs, or the first one if no element is known. Throws Error if
/// there is none, which Capsule::load rules out.
Var failing_output(const Capsule& capsule);

}  // namespace xtape
