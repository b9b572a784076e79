#include "onnx/messages.hpp"

#include "onnx/wire.hpp"

namespace xtape::onnx {

namespace {
/// The context of a message: the path of the file, and the number of graphs around the message.
struct Place {
  std::string model;
  int depth = 0;
};

Graph read_graph(Message message, const Place& place);

Attribute read_attribute(Message message, const Place& place, std::string& name) {
  Attribute attribute;
  read_fields(
      message, read_string(1, name), field(single_field(2), [&](Message& field) { attribute.f = field.get_float(); }),
      read_integer(3, attribute.i), read_string(4, attribute.s),
      field(text_field(5), [&](Message& field) { attribute.t = read_tensor(text_of(field.get_view()), place.model); }),
      message_field(6, [&](Message graph) { attribute.g = std::make_shared<const Graph>(read_graph(graph, place)); }),
      list_field<&Message::get_float, &Message::get_packed_float>(
          7, single_field(7), [&](float each) { attribute.floats.push_back(each); }),
      read_integers(8, attribute.ints), read_string(9, attribute.strings), read_integer(20, attribute.type),
      read_string(21, attribute.reference));
  return attribute;
}

/// Returns a reader of the attributes of `owner()`.
template <class Owner>
auto read_attributes(std::uint32_t number, const Place& place, const Owner& owner, NodeAttributes& attributes) {
  return message_field(number, [&place, owner, &attributes](Message message) {
    std::string name;
    Attribute attribute = read_attribute(message, place, name);
    if (!attributes.emplace(name, std::move(attribute)).second)
      throw FileError(owner() + " has attribute '" + name + "' twice");
  });
}

Node read_node(Message message, const Place& place) {
  Node node;
  const auto shown = [&] { return "node '" + node.shown() + "'"; };
  read_fields(message, read_string(1, node.inputs), read_string(2, node.outputs), read_string(3, node.name),
              read_string(4, node.op), read_attributes(5, place, shown, node.attributes), read_string(7, node.domain),
              read_string(8, node.overload));
  if (node.domain == "ai.onnx") node.domain.clear();
  return node;
}

void read_size(Message message, Value& value) {
  std::int64_t size = -1;
  std::string name;
  read_fields(message, read_integer(1, size), read_string(2, name));
  value.sizes->push_back(size);
  value.names.push_back(size < 0 ? name : "");
}

void read_array_type(Message message, Value& value) {
  read_fields(message, read_integer(1, value.element), message_field(2, [&](Message shape) {
                value.sizes.emplace();
                value.names.clear();
                read_fields(shape, message_field(1, [&](Message size) { read_size(size, value); }));
              }));
}

void read_type(Message message, Value& value) {
  const auto no_array = [&value](std::uint32_t number, const char* kind) {
    return message_field(number, [&value, kind](Message) { value.kind = kind; });
  };
  read_fields(message, message_field(1, [&](Message type) { read_array_type(type, value); }), no_array(4, "a sequence"),
              no_array(5, "a map"), no_array(8, "a sparse array"), no_array(9, "optional"));
}

Value read_value(Message message) {
  Value value;
  read_fields(message, read_string(1, value.name), message_field(2, [&](Message type) { read_type(type, value); }));
  return value;
}

Graph read_graph(Message message, const Place& outside) {
  constexpr int deepest = 32;  // limits the nesting, because the reader is recursive
  const Place place{outside.model, outside.depth + 1};
  if (place.depth > deepest) throw FileError("graphs are nested more than " + std::to_string(deepest) + " deep");
  Graph graph;
  read_fields(
      message, message_field(1, [&](Message node) { graph.nodes.push_back(read_node(node, place)); }),
      field(text_field(5),
            [&](Message& field) { graph.initialisers.push_back(read_tensor(text_of(field.get_view()), place.model)); }),
      message_field(11, [&](Message value) { graph.inputs.push_back(read_value(value)); }),
      message_field(12, [&](Message value) { graph.outputs.push_back(read_value(value)); }),
      message_field(15, [](Message) { throw FileError("sparse initialisers are not supported"); }));
  return graph;
}

/// Returns a reader of an OperatorSetIdProto. It sets the version unless the version belongs to another domain.
auto read_opset(std::uint32_t number, std::int64_t& opset) {
  return message_field(number, [&opset](Message message) {
    std::string domain;
    std::int64_t version = 0;
    read_fields(message, read_string(1, domain), read_integer(2, version));
    if (domain.empty() || domain == "ai.onnx") opset = version;
  });
}

LocalFunction read_function(Message message, const Place& place) {
  LocalFunction function;
  const auto shown = [&] { return "function '" + function.name + "'"; };
  read_fields(message, read_string(1, function.name), read_string(4, function.inputs), read_string(5, function.outputs),
              message_field(7, [&](Message node) { function.nodes.push_back(read_node(node, place)); }),
              read_opset(9, function.opset), read_string(10, function.domain),
              read_attributes(11, place, shown, function.defaults), read_string(13, function.overload));
  return function;
}
}  // namespace

std::string function_key(const std::string& domain, const std::string& name, const std::string& overload) {
  return (domain.empty() || domain == "ai.onnx" ? "" : domain + ".") + name + (overload.empty() ? "" : ":" + overload);
}

File read_model(std::string_view bytes, const std::string& model) {
  return undamaged([&] {
    File file;
    const Place place{model};
    bool graph = false;
    const auto add_function = [&](Message message) {
      LocalFunction function = read_function(message, place);
      const std::string key = function_key(function.domain, function.name, function.overload);
      if (!file.functions.emplace(key, std::move(function)).second)
        throw FileError("there are two functions '" + key + "'");
    };
    const auto set_graph = [&](Message message) {
      graph = true;
      file.graph = read_graph(message, place);
    };
    read_fields(Message(bytes.data(), bytes.size()), message_field(7, set_graph), read_opset(8, file.opset),
                message_field(25, add_function));
    if (!graph) throw FileError("it has no graph, so it is not an ONNX model");
    return file;
  });
}

}  // namespace xtape::onnx
