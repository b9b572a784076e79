/// Graphs that are written: names, initialisers, nodes; and the table of ops, which says how a call of each is written.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "messages.hpp"
#include "xtape/op/op.hpp"

namespace xtape::onnx {

using Names = std::vector<std::string>;
using Integers = std::vector<std::int64_t>;
/// The names of values of a tape.
using ValueNames = std::unordered_map<ValueId, std::string>;

/// A GraphProto, as bytes.
struct GraphBytes {
  std::string bytes;
};
/// The attributes of a node that is written. Doubles are written as floats, as ONNX has no others.
using WrittenAttributes =
    std::vector<std::pair<std::string, std::variant<std::int64_t, double, std::string, Integers, GraphBytes>>>;

struct Initialiser {
  std::string name;
  Array array;
};

/// The element type that arrays of this dtype are written as.
Element element_of(Dtype dtype);
/// A size of an input or output in the file: a number or a name; neither where only the file's reader can know.
struct Dimension {
  std::optional<std::int64_t> size = std::nullopt;
  std::string name = {};
};
/// A ValueInfoProto.
std::string value_bytes(const std::string& name, const ValueType& type);
std::string value_bytes(const std::string& name, Dtype dtype, const std::optional<std::vector<Dimension>>& sizes);
/// The dtype in which operators of numbers take an array: they take no bool, and few take int8.
constexpr Dtype number_dtype(Dtype dtype) {
  return dtype == Dtype::boolean || dtype == Dtype::int8 ? Dtype::int32 : dtype;
}

/// What the graphs of a file share: the graphs inside nodes see the names of those outside.
class Shared {
 public:
  /// `open`: sizes of arrays inside graphs are not said, as they differ from play to play.
  explicit Shared(std::int64_t version, bool open_sizes = false) : opset(version), open(open_sizes) {}
  /// `hint`, or with a number behind it if it is taken.
  std::string fresh(const std::string& hint);
  /// An initialiser, or for floats, which would be taken for weights, a node. Small constants with the same elements
  /// are one.
  std::string constant(const Array& array);
  std::string add(const std::string& hint, const Array& array);

  /// The ValueInfoProto of a value of a graph inside a node.
  std::string inside_bytes(const std::string& name, const ValueType& type) const;

  const std::int64_t opset;
  const bool open;
  std::vector<Initialiser> initialisers;
  std::string constants;  ///< The nodes of constants, as fields of the GraphProto, before all others.
  Names missing;          ///< Calls that cannot be written.

 private:
  std::string added_constant(const Array& array);
  std::set<std::string> taken_;
  std::map<std::string, std::int64_t> counts_;
  std::map<std::string, std::string> known_;  // constants by type and bytes
};

class GraphWriter;
struct WriterRow;

/// A call that is written.
struct WriteCall {
  GraphWriter& graph;
  const xtape::Node& node;
  Names inputs;
  std::vector<ValueType> types;  ///< The types of the inputs.
  std::vector<bool> wanted;      ///< Per output: whether something reads it.
  const WriterRow* row = nullptr;

  const Attributes& attributes() const { return node.attributes; }
  std::int64_t integer(const char* name) const { return attributes().get<std::int64_t>(name); }
  const Integers& integers(const char* name) const { return attributes().get<Integers>(name); }
  bool flag(const char* name) const { return attributes().get<bool>(name); }
  double number(const char* name) const { return attributes().get<double>(name); }
  const std::string& text(const char* name) const { return attributes().get<std::string>(name); }
  const ValueType& type(std::size_t output = 0) const { return node.outputs[output]; }
  const Shape& shape(std::size_t input = 0) const { return types[input].shape; }
  /// The attribute `name` as an axis of the first input, counted from the front.
  std::int64_t axis(const char* name = "axis") const;
  /// Whether an output after the first is read.
  bool more_wanted() const;

  // Each adds a node, or an initialiser, and returns the name of its value.
  std::string add(const std::string& op, Names operands, const WrittenAttributes& attributes = {}) const;
  Names add(const std::string& op, Names operands, std::size_t outputs, const WrittenAttributes& attributes) const;
  std::string cast(const std::string& value, Dtype dtype) const;
  /// The value, cast if it has another dtype.
  std::string cast(const std::string& value, Dtype from, Dtype to) const {
    return from == to ? value : cast(value, to);
  }
  /// a where the condition is true, else b, which are of this dtype: bools as integers, as ONNX Runtime selects numbers
  /// only.
  std::string where(const std::string& condition, const std::string& a, const std::string& b, Dtype dtype) const;
  std::string list(const Integers& numbers) const;               ///< An int64 array of one axis.
  std::string scalar(const Literal& number, Dtype dtype) const;  ///< An array of rank 0.
  std::string reshaped(const std::string& value, const Shape& shape) const;
  std::string transposed(const std::string& value, const Integers& axes) const;
};

/// Writes a call and returns the names of its outputs; those that nothing reads may be empty or missing. No names: the
/// call cannot be written this way, so its expansion is.
using Writer = Names (*)(const WriteCall& call);
struct WriterRow {
  const char* op;
  Writer writer;
  const char* name = nullptr;  ///< An ONNX operator, for writers of several ops.
};
using WriterRows = std::vector<WriterRow>;

// A function for each family, in the file of its name in writers/.
const WriterRows& elementwise_writers();
const WriterRows& reduction_writers();
const WriterRows& shape_writers();
const WriterRows& indexing_writers();
const WriterRows& product_writers();
const WriterRows& control_writers();

/// The row of an op; null if there is none.
const WriterRow* find_writer(const std::string& op);
Names written_ops();

/// The fields of a GraphProto but its initialisers. Nodes are such fields; inputs and outputs are ValueInfoProtos.
std::string graph_bytes(const std::string& nodes, const std::string& name, const Names& inputs, const Names& outputs);

/// A graph: its nodes in order.
class GraphWriter {
 public:
  explicit GraphWriter(Shared& shared) : shared_(shared) {}
  Shared& shared() { return shared_; }
  /// Writes what `results` need, down to the values that have names.
  void write(const Tape& tape, const std::vector<ValueId>& results, ValueNames& names, int depth = 0);
  /// Adds a node with this many outputs, and returns their names.
  Names add(const std::string& op, const Names& inputs, std::size_t outputs, const WrittenAttributes& attributes);
  /// Adds a node that gives `value` the name `name`.
  void rename(const std::string& value, const std::string& name);
  void set_scope(const std::string& path) { scope_ = path; }
  const std::string& nodes() const { return nodes_; }
  std::string bytes(const std::string& name, const Names& inputs, const Names& outputs) const {
    return graph_bytes(nodes_, name, inputs, outputs);
  }

 private:
  Names written(const xtape::Node& node, WriteCall& call, const Tape& tape, int depth);
  Names expanded(const xtape::Node& node, const WriteCall& call, const Tape& tape, int depth);
  void append(const std::string& op, const Names& inputs, const Names& outputs, const WrittenAttributes& attributes,
              const std::string& name);

  Shared& shared_;
  std::string nodes_;  // fields of the GraphProto
  std::string scope_;  // of the nodes that are added
};

}  // namespace xtape::onnx
