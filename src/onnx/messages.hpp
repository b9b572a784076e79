/// The messages of an ONNX file as plain structures. Their names and numbers of fields follow onnx.proto.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/system/files.hpp"
#include "xtape/array.hpp"

namespace xtape::onnx {

/// The numbers of the element types, TensorProto.DataType.
enum class Element : std::int32_t {
  none,
  float32,
  uint8,
  int8,
  uint16,
  int16,
  int32,
  int64,
  string,
  boolean,
  float16,
  float64,
  uint32,
  uint64,
  complex64,
  complex128,
  bfloat16
};

/// Returns the dtype in which xtape holds elements of this type. It is the next wider dtype if xtape lacks the type.
/// Throws DtypeError for strings, complex numbers and other unsupported types.
Dtype dtype_of_element(std::int64_t element, const std::string& what);

/// TensorProto: an array and its name. `element` is its element type in the file.
struct Tensor {
  std::string name;
  Element element = Element::none;
  Array array;
};

struct Graph;

/// AttributeProto. `type` is AttributeType.
struct Attribute {
  enum Type { none, real = 1, integer = 2, text = 3, tensor = 4, graph = 5, reals = 6, integers = 7, texts = 8 };
  std::int64_t type = none;
  double f = 0;
  std::int64_t i = 0;
  std::string s;
  Tensor t;
  std::shared_ptr<const Graph> g = nullptr;
  std::vector<double> floats;
  std::vector<std::int64_t> ints;
  std::vector<std::string> strings;
  std::string reference;  // in a function: the name of the call's attribute that replaces this attribute
};
using NodeAttributes = std::map<std::string, Attribute>;

/// NodeProto.
struct Node {
  std::string name, op, domain, overload;
  std::vector<std::string> inputs, outputs;
  NodeAttributes attributes;
  /// Returns the name of the node, or the name of its first output if the node has none.
  std::string shown() const { return !name.empty() || outputs.empty() ? name : outputs.front(); }
};

/// ValueInfoProto. Sizes that are not numbers are -1 and may have a name.
struct Value {
  std::string name;
  std::string kind;  // empty for an array, otherwise a description such as "a sequence"
  std::int64_t element = 0;
  std::optional<std::vector<std::int64_t>> sizes = {};
  std::vector<std::string> names = {};  // one name for each size; empty if the size has no name
};

/// GraphProto.
struct Graph {
  std::vector<Node> nodes;
  std::vector<Tensor> initialisers;
  std::vector<Value> inputs, outputs;
};

/// FunctionProto: the nodes that replace a call. `defaults` are the attributes that a call may omit.
struct LocalFunction {
  std::string name, domain, overload;
  std::int64_t opset = 0;  // 0 stands for the version of the model
  std::vector<std::string> inputs, outputs;
  NodeAttributes defaults;
  std::vector<Node> nodes;
};

/// Returns the key by which a call finds its function.
std::string function_key(const std::string& domain, const std::string& name, const std::string& overload);

/// ModelProto.
struct File {
  std::int64_t opset = 0;
  std::map<std::string, LocalFunction> functions;  // by function_key
  Graph graph;
};

/// Reads a ModelProto. `model` is the path of its file, beside which its external data lie. Throws FileError if the
/// message is damaged or has no graph, and DtypeError if arrays have types that xtape lacks.
File read_model(std::string_view bytes, const std::string& model);

/// Reads a TensorProto. Throws the same errors as read_model.
Tensor read_tensor(std::string_view bytes, const std::string& model = "");

// Large blocks of memory that all threads fill together.

/// Like OpenFile::read.
void read_pieces(const OpenFile& file, std::uint64_t offset, void* to, std::size_t count);
/// Like std::memcpy.
void copy_pieces(void* to, const void* from, std::size_t count);
/// Returns the bytes of a file as int8, in memory on huge pages. Throws FileError as OpenFile does. Throws OutOfMemory
/// if the bytes and the arrays made from them do not fit.
Array file_bytes(const std::string& path);

}  // namespace xtape::onnx
