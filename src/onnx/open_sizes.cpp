#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

#include "onnx/graphs_by_size.hpp"
#include "onnx/writing.hpp"

namespace xtape::onnx {

namespace {
/// The larger values come first. They differ from the sizes of usual layers, so that no two numbers of a graph are
/// equal by chance. The last values are for functions that accept only short sequences.
constexpr SizeValues tried[] = {{{{67, 71, 73}, {79, 83, 89}, {97, 101, 103}, {107, 109, 113}}},
                                {{{11, 13, 17}, {19, 23, 29}, {31, 37, 41}, {43, 47, 53}}},
                                {{{5, 7, 3}, {6, 8, 4}, {9, 11, 10}, {12, 14, 13}}}};

/// Nodes that compute integers from the shapes of the inputs. They come before all other nodes. The functions below add
/// nodes or initialisers, and return the names of the arrays that these compute or contain.
class SizeNodes {
 public:
  SizeNodes(const Graphs& graphs, Shared& shared) : graphs_(graphs), shared_(shared), nodes_(shared) {
    nodes_.set_scope("sizes");
    for (std::size_t i = 0; i < graphs.open().size(); ++i) sizes_.push_back(size(i));
  }
  const std::string& nodes() const { return nodes_.nodes(); }

  /// Returns the ValueInfoProtos of inputs, outputs or values, with the names of dynamic dimensions.
  Names values(Types WrittenGraph::*of) const {
    Names bytes;
    for (std::size_t index = 0; index < (graphs_.first().*of).size(); ++index) {
      const auto& [name, type] = (graphs_.first().*of)[index];
      std::vector<Dimension> sizes(type.shape.size());
      for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
        const auto known =
            graphs_.polynomial([&](const WrittenGraph& graph) { return (graph.*of)[index].value.shape[axis]; });
        if (!known) continue;
        if (is_number(*known)) sizes[axis].size = known->front();
        for (std::size_t i = 0; i < graphs_.open().size(); ++i)
          if (*known == alone(i)) sizes[axis].name = graphs_.open()[i];
      }
      bytes.push_back(value_bytes(name, type.dtype, sizes));
    }
    return bytes;
  }

  /// Adds the nodes that compute the initialiser with this index from the sizes of the inputs.
  void make(std::size_t index) {
    const auto array = [index](const WrittenGraph& graph) -> const Array& {
      return graph.shared.initialisers[index].array;
    };
    const Array& first = array(graphs_.first());
    if (!graphs_.all([&](const WrittenGraph& graph) { return array(graph).shape().size() == first.shape().size(); }))
      graphs_.refuse_array(index);
    const bool same_shape =
        graphs_.all([&](const WrittenGraph& graph) { return array(graph).shape() == first.shape(); });
    std::string value;
    if (same_shape && first.dtype() == Dtype::int64 && first.shape().size() < 2)
      value = listed(index, first.shape().empty());
    else
      value = spread(index, array);
    nodes_.rename(value, shared_.initialisers[index].name);
  }

 private:
  static bool is_number(const Polynomial& known) {
    return std::all_of(known.begin() + 1, known.end(), [](std::int64_t factor) { return factor == 0; });
  }

  Polynomial alone(std::size_t i) const {
    Polynomial known(std::size_t{1} << graphs_.open().size());
    known[std::size_t{1} << i] = 1;
    return known;
  }

  std::string add(const std::string& op, const Names& inputs, const WrittenAttributes& attributes = {}) {
    return nodes_.add(op, inputs, 1, attributes)[0];
  }

  /// Adds an int64 array with one axis, or without axes if `is_scalar`. Does not reuse constants of the graph, because
  /// they may be replaced.
  std::string constant(const Integers& numbers, bool is_scalar = false) {
    std::string& name = constants_[{numbers, is_scalar}];
    if (!name.empty()) return name;
    Array array(Dtype::int64, is_scalar ? Shape{} : Shape{std::ssize(numbers)});
    std::copy(numbers.begin(), numbers.end(), array.as<std::int64_t>());
    return name = shared_.add("sizes/constant", array);
  }

  /// Computes a dynamic dimension, [1], from the shape of the first input that has it.
  std::string size(std::size_t i) {
    for (std::size_t k = 0; k < graphs_.first().inputs.size(); ++k) {
      const auto& [name, type] = graphs_.first().inputs[k];
      for (std::size_t axis = 0; axis < type.shape.size(); ++axis)
        if (graphs_.polynomial([&](const WrittenGraph& graph) { return graph.inputs[k].value.shape[axis]; }) ==
            alone(i)) {
          const auto at = static_cast<std::int64_t>(axis);
          return add("Shape", {name}, {{"start", at}, {"end", at + 1}});
        }
    }
    throw Error("no input of the file has the size " + graphs_.open()[i]);
  }

  /// Computes the value of a polynomial, [1].
  std::string value_of(const Polynomial& known) {
    if (is_number(known)) return constant({known[0]});
    const auto found = values_.find(known);
    if (found != values_.end()) return found->second;
    std::string sum;
    for (std::size_t k = 0; k < known.size(); ++k) {
      if (known[k] == 0) continue;
      std::string product = known[k] == 1 && k != 0 ? "" : constant({known[k]});
      for (std::size_t i = 0; i < sizes_.size(); ++i)
        if ((k >> i & 1) != 0) product = product.empty() ? sizes_[i] : add("Mul", {product, sizes_[i]});
      sum = sum.empty() ? product : add("Add", {sum, product});
    }
    return values_[known] = sum;
  }

  std::string scalar_of(const Polynomial& known) {
    return is_number(known) ? constant({known[0]}, true) : add("Squeeze", {value_of(known), constant({0})});
  }

  /// Computes an initialiser whose elements are polynomials: a list or, if `is_scalar`, a single number.
  std::string listed(std::size_t index, bool is_scalar) {
    const std::int64_t count = graphs_.first().shared.initialisers[index].array.count();
    std::vector<Polynomial> list;
    for (std::int64_t i = 0; i < count; ++i) {
      const auto known = graphs_.polynomial(
          [&](const WrittenGraph& graph) { return graph.shared.initialisers[index].array.as<std::int64_t>()[i]; });
      if (!known) graphs_.refuse_array(index);
      list.push_back(*known);
    }
    return is_scalar ? scalar_of(list[0]) : joined_list(list);
  }

  std::string joined_list(const std::vector<Polynomial>& list) {
    Names parts;
    for (const Polynomial& each : list) parts.push_back(value_of(each));
    return parts.size() == 1 ? parts[0] : add("Concat", parts, {{"axis", 0}});
  }

  /// Computes an array of any shape in which each element is a number plus a multiple of each of its indices. Examples
  /// are ranges, the places of windows, and zeros.
  template <class Of>
  std::string spread(std::size_t index, const Of& array) {
    const Array& first = array(graphs_.first());
    const std::size_t rank = first.shape().size();
    std::vector<Polynomial> shape;
    for (std::size_t axis = 0; axis < rank; ++axis) {
      const auto known = graphs_.polynomial([&](const WrittenGraph& graph) { return array(graph).shape()[axis]; });
      if (!known) graphs_.refuse_array(index);
      shape.push_back(*known);
    }
    if (first.dtype() != Dtype::int64) graphs_.refuse_array(index);
    const Strides strides = dense_strides(first.shape());
    const std::int64_t* elements = first.as<std::int64_t>();
    Integers steps;
    for (std::size_t axis = 0; axis < rank; ++axis)
      steps.push_back(first.shape()[axis] > 1 ? elements[strides[axis]] - elements[0] : 0);
    if (first.count() == 0 ||
        !graphs_.all([&](const WrittenGraph& graph) { return is_spread(array(graph), elements[0], steps); }))
      graphs_.refuse_array(index);
    std::string sum = constant({elements[0]}, true);
    for (std::size_t axis = 0; axis < rank; ++axis) {
      if (steps[axis] == 0) continue;
      Integers line(rank, 1);
      line[axis] = -1;
      const std::string range = add("Range", {constant({0}, true), scalar_of(shape[axis]), constant({1}, true)});
      const std::string part =
          add("Reshape", {steps[axis] == 1 ? range : add("Mul", {range, constant({steps[axis]})}), constant(line)});
      sum = add("Add", {sum, part});
    }
    return add("Expand", {sum, joined_list(shape)});
  }

  static bool is_spread(const Array& array, std::int64_t start, const Integers& steps) {
    const Strides strides = dense_strides(array.shape());
    for (std::int64_t i = 0; i < array.count(); ++i) {
      std::int64_t rest = i, wanted = start;
      for (std::size_t axis = 0; axis < steps.size(); ++axis) {
        wanted += rest / strides[axis] * steps[axis];
        rest %= strides[axis];
      }
      if (array.as<std::int64_t>()[i] != wanted) return false;
    }
    return true;
  }

  const Graphs& graphs_;
  Shared& shared_;
  GraphWriter nodes_;
  Names sizes_;                               // the value of each size, [1]
  std::map<Polynomial, std::string> values_;  // the values of polynomials, [1]
  std::map<std::pair<Integers, bool>, std::string> constants_;
};

OpenGraph merged(const Graphs& graphs) {
  graphs.check_alike();
  OpenGraph made{graphs.first(), {}, {}, {}};
  Shared& shared = made.graph.shared;
  const std::size_t count = shared.initialisers.size();
  SizeNodes sizes(graphs, shared);
  std::vector<bool> replaced(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Array& array = shared.initialisers[i].array;
    replaced[i] = !graphs.all(
        [&](const WrittenGraph& graph) { return Graphs::same_elements(array, graph.shared.initialisers[i].array); });
    if (replaced[i]) sizes.make(i);
  }
  std::vector<Initialiser> kept;
  for (std::size_t i = 0; i < shared.initialisers.size(); ++i)
    if (i >= count || !replaced[i]) kept.push_back(shared.initialisers[i]);
  shared.initialisers = std::move(kept);
  made.graph.nodes = sizes.nodes() + made.graph.nodes;
  made.inputs = sizes.values(&WrittenGraph::inputs);
  made.outputs = sizes.values(&WrittenGraph::outputs);
  made.values = sizes.values(&WrittenGraph::values);
  return made;
}
}  // namespace

OpenGraph with_open_sizes(const Names& open, const std::function<WrittenGraph(const NamedSizes&)>& write) {
  if (open.empty() || open.size() > most_open_sizes)
    throw Error("a file has 1 to " + std::to_string(most_open_sizes) + " open sizes, got " +
                std::to_string(open.size()));
  for (std::size_t i = 1; i < open.size(); ++i)
    if (std::find(open.begin(), open.begin() + static_cast<std::ptrdiff_t>(i), open[i]) !=
        open.begin() + static_cast<std::ptrdiff_t>(i))
      throw Error("two open sizes are named '" + open[i] + "'");
  const std::size_t choices = std::size(tried);
  for (std::size_t k = 0;; ++k) {
    std::optional<Graphs> graphs;
    try {
      graphs.emplace(open, tried[k], write);
    } catch (const Error&) {  // the sizes are too large for the function
      if (k + 1 == choices) throw;
      continue;
    }
    return merged(*graphs);
  }
}

}  // namespace xtape::onnx
