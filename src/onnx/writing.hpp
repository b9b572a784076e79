/// Writes graphs: names, initialisers and nodes. A table of ops specifies how to write a call of each op.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "onnx/messages.hpp"
#include "xtape/attributes.hpp"
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
/// The attributes of a node to write. Doubles become floats, because ONNX has no double attributes.
using WrittenAttributes =
    std::vector<std::pair<std::string, std::variant<std::int64_t, double, std::string, Integers, GraphBytes>>>;

struct Initialiser {
  std::string name;
  Array array;
};

/// Returns the element type in which arrays of this dtype are written.
Element element_of(Dtype dtype);
/// A size of an input or output in the file: a number or a name. Has neither if only the reader of the file can know
/// the size.
struct Dimension {
  std::optional<std::int64_t> size = std::nullopt;
  std::string name = {};
};
/// A ValueInfoProto.
std::string value_bytes(const std::string& name, const ValueType& type);
std::string value_bytes(const std::string& name, Dtype dtype, const std::optional<std::vector<Dimension>>& sizes);
/// Returns the dtype in which an operator on numbers accepts an array. Such operators accept no bool, and few accept
/// int8.
constexpr Dtype number_dtype(Dtype dtype) {
  return dtype == Dtype::boolean || dtype == Dtype::int8 ? Dtype::int32 : dtype;
}

/// The data that all graphs of a file share, because graphs inside nodes can use the names outside.
class Shared {
 public:
  /// If `open_sizes` is true, the file does not state the sizes of arrays in graphs inside nodes, because these sizes
  /// differ between runs.
  explicit Shared(std::int64_t version, bool open_sizes = false) : opset(version), open(open_sizes) {}
  /// Returns `hint`, or `hint` with a number appended if the name is taken.
  std::string fresh(const std::string& hint);
  /// Adds a constant and returns its name. Floats of up to 1 MiB become a node Constant, because float initialisers
  /// count as weights. Other arrays become an initialiser. Small constants with the same elements share a name.
  std::string constant(const Array& array);
  std::string add(const std::string& hint, const Array& array);

  /// Returns the ValueInfoProto of a value in a graph inside a node.
  std::string inside_bytes(const std::string& name, const ValueType& type) const;

  const std::int64_t opset;
  const bool open;
  std::vector<Initialiser> initialisers;
  std::string constants;  ///< The nodes of constants, as fields of the GraphProto. They come before all other nodes.
  Names missing;          ///< The calls that cannot be written.

 private:
  std::string added_constant(const Array& array);
  std::set<std::string> taken_;
  std::map<std::string, std::int64_t> counts_;
  std::map<std::string, std::string> known_;  // constants by their type and bytes
};

class GraphWriter;
struct WriterRow;

/// A call to write.
struct WriteCall : CallAttributes {
  GraphWriter& graph;
  const xtape::Node& node;
  Names inputs;
  std::vector<ValueType> types;  ///< The types of the inputs.
  std::vector<bool> wanted;      ///< Per output: whether another node reads it.
  const WriterRow* row = nullptr;

  const ValueType& type(std::size_t output = 0) const { return node.outputs[output]; }
  const Shape& shape(std::size_t input = 0) const { return types[input].shape; }
  /// Returns the attribute `name` as an axis of the first input, counted from the front.
  std::int64_t axis(const char* name = "axis") const;
  /// Returns whether an output after the first one is read.
  bool more_wanted() const;

  // Each function adds a node or an initialiser and returns the name of its value.
  std::string add(const std::string& op, const Names& operands, const WrittenAttributes& attributes = {}) const;
  Names add(const std::string& op, const Names& operands, std::size_t outputs,
            const WrittenAttributes& attributes) const;
  std::string cast(const std::string& value, Dtype dtype) const;
  /// Returns the value, cast if its dtype differs.
  std::string cast(const std::string& value, Dtype from, Dtype to) const {
    return from == to ? value : cast(value, to);
  }
  /// Returns `a` where the condition is true, and `b` elsewhere. Both have this dtype. Bools are selected as integers,
  /// because ONNX Runtime selects only numbers.
  std::string where(const std::string& condition, const std::string& a, const std::string& b, Dtype dtype) const;
  std::string list(const Integers& numbers) const;               ///< An int64 array of one axis.
  std::string scalar(const Literal& number, Dtype dtype) const;  ///< An array of rank 0.
  std::string reshaped(const std::string& value, const Shape& shape) const;
  std::string transposed(const std::string& value, const Integers& axes) const;
};

/// Writes a call and returns the names of its outputs. Outputs that are not read may have empty or no names. If the
/// writer returns no names at all, the expansion of the call is written instead.
using Writer = Names (*)(const WriteCall& call);
struct WriterRow {
  const char* op;
  Writer writer;
  const char* name = nullptr;  ///< The ONNX operator, for writers that serve several ops.
};
using WriterRows = std::vector<WriterRow>;

/// Adds an array of blocks as small integers and DequantizeLinear, whose result is the array in float32. ONNX has no
/// blocks with minima, which are subtracted. Returns the name of the result.
std::string add_blocks(GraphWriter& graph, const std::string& name, const Array& array);

// There is one function for each family. It is in the file of this name in writers/.
const WriterRows& elementwise_writers();
const WriterRows& reduction_writers();
const WriterRows& shape_writers();
const WriterRows& indexing_writers();
const WriterRows& product_writers();
const WriterRows& control_writers();

/// Returns the row of an op, or null if there is none.
const WriterRow* find_writer(const std::string& op);
Names written_ops();

/// The types of values, by name.
using Types = Named<ValueType>;

/// Returns the fields of a GraphProto except its initialisers. `nodes` are fields of the GraphProto. Inputs, outputs
/// and the values between them are ValueInfoProtos.
std::string graph_bytes(const std::string& nodes, const std::string& name, const Names& inputs, const Names& outputs,
                        const Names& values);

/// Writes one graph: its nodes in order.
class GraphWriter {
 public:
  explicit GraphWriter(Shared& shared) : shared_(shared) {}
  Shared& shared() { return shared_; }
  /// Writes the nodes that `results` need. Stops at values that already have names.
  void write(const Tape& tape, const std::vector<ValueId>& results, ValueNames& names, int depth = 0);
  /// Adds a node with this many outputs, and returns their names.
  Names add(const std::string& op, const Names& inputs, std::size_t outputs, const WrittenAttributes& attributes);
  /// Adds a node that gives `value` the new name `name`.
  void rename(const std::string& value, const std::string& name);
  void set_scope(const std::string& path) { scope_ = path; }
  const std::string& nodes() const { return nodes_; }
  /// Returns the types of the values that nodes of this graph make and that are values of a tape, in the order of the
  /// nodes.
  Types types() const;
  /// Returns the graph as one inside a node.
  std::string bytes(const std::string& name, const Names& inputs, const Names& outputs) const;

 private:
  Names written(const xtape::Node& node, WriteCall& call, const Tape& tape, int depth);
  Names expanded(const xtape::Node& node, const WriteCall& call, const Tape& tape, int depth);
  void append(const std::string& op, const Names& inputs, const Names& outputs, const WrittenAttributes& attributes,
              const std::string& name);

  Shared& shared_;
  std::string nodes_;  // fields of the GraphProto
  std::string scope_;  // the scope of the nodes to add
  Names made_;         // the values that the nodes make
  std::unordered_map<std::string, ValueType> types_;
};

// Files with dynamic dimensions. The graph is written for several sizes of these dimensions. Everything that differs
// between the written graphs is then computed from the shapes of the inputs.

/// A graph without its file.
struct WrittenGraph {
  Shared shared;
  std::string nodes;  // fields of the GraphProto
  Types inputs, outputs, values;
};

/// A graph with ValueInfoProtos for its inputs, outputs and values.
struct OpenGraph {
  WrittenGraph graph;
  Names inputs, outputs, values;
};

/// Returns the graph in which the dimensions named in `open` are dynamic. Throws Error if the graph depends on these
/// dimensions in a way that save_onnx does not support.
OpenGraph with_open_sizes(const Names& open, const std::function<WrittenGraph(const NamedSizes&)>& write);

// Writes files piece by piece, so that the arrays of a model are not copied.

/// An array to write: a TensorProto without its elements, and the elements.
struct WrittenTensor {
  std::string fields;
  Array array;
};
WrittenTensor tensor_of(const Initialiser& initialiser);

/// Writes a ModelProto. `model` contains the fields of the ModelProto except the graph. `graph` contains the fields of
/// the graph except the initialisers. If the file would be larger than `largest_file` bytes, writes the elements of
/// large arrays to a second file beside it.
void write_model(const std::string& path, const std::string& model, const std::string& graph,
                 const std::vector<WrittenTensor>& tensors, std::uint64_t largest_file);

}  // namespace xtape::onnx
