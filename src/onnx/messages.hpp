/// What an ONNX file says: its messages as plain structures. The names and numbers of fields are those of onnx.proto.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

/// The dtype in which xtape has elements of that type: the next wider one if it lacks the type. Throws DtypeError for
/// strings, complex numbers and others.
Dtype dtype_of_element(std::int64_t element, const std::string& what);

/// TensorProto: an array and its name. `element` is the type in the file.
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
  std::string reference;  // in a function: the attribute of the call that stands here
};
using NodeAttributes = std::map<std::string, Attribute>;

/// NodeProto.
struct Node {
  std::string name, op, domain, overload;
  std::vector<std::string> inputs, outputs;
  NodeAttributes attributes;
  /// Its name, or that of its first output.
  std::string shown() const { return !name.empty() || outputs.empty() ? name : outputs.front(); }
};

/// ValueInfoProto. Sizes that are not numbers are -1, and may have a name.
struct Value {
  std::string name;
  std::string kind;  // empty for an array, else "a sequence" …
  std::int64_t element = 0;
  std::optional<std::vector<std::int64_t>> sizes = {};
  std::vector<std::string> names = {};  // one for each size; empty without a name
};

/// GraphProto.
struct Graph {
  std::vector<Node> nodes;
  std::vector<Tensor> initialisers;
  std::vector<Value> inputs, outputs;
};

/// FunctionProto: nodes that calls stand for. `defaults` are attributes that a call may leave out.
struct LocalFunction {
  std::string name, domain, overload;
  std::int64_t opset = 0;  // 0: that of the model
  std::vector<std::string> inputs, outputs;
  NodeAttributes defaults;
  std::vector<Node> nodes;
};

/// What a call of a function and the function have in common.
std::string function_key(const std::string& domain, const std::string& name, const std::string& overload);

/// ModelProto.
struct File {
  std::int64_t opset = 0;
  std::map<std::string, LocalFunction> functions;  // by function_key
  Graph graph;
};

/// Reads a ModelProto. `folder` is where its external data is. Throws FileError if it is damaged or has no graph, and
/// DtypeError for arrays of types that xtape lacks.
File read_model(std::string_view bytes, const std::string& folder);

/// Reads a TensorProto. Throws the same.
Tensor read_tensor(std::string_view bytes, const std::string& folder = "");

}  // namespace xtape::onnx
