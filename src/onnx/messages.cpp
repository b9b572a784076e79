#include "messages.hpp"

#include "wire.hpp"

namespace xtape::onnx {

namespace {
/// The context of a message: the folder of the file, and the number of graphs around the message.
struct Place {
  std::string folder;
  int depth = 0;
};

Graph read_graph(Message message, const Place& place);

Attribute read_attribute(Message message, const Place& place, std::string& name) {
  Attribute attribute;
  while (message.next()) {
    switch (message.tag_and_type()) {
      case text_field(1):
        name = message.get_string();
        break;
      case single_field(2):
        attribute.f = message.get_float();
        break;
      case number_field(3):
        attribute.i = message.get_int64();
        break;
      case text_field(4):
        attribute.s = message.get_string();
        break;
      case text_field(5):
        attribute.t = read_tensor(text_of(message.get_view()), place.folder);
        break;
      case text_field(6):
        attribute.g = std::make_shared<const Graph>(read_graph(message.get_message(), place));
        break;
      case single_field(7):
        attribute.floats.push_back(message.get_float());
        break;
      case text_field(7):
        for (const float each : message.get_packed_float()) attribute.floats.push_back(each);
        break;
      case number_field(8):
        attribute.ints.push_back(message.get_int64());
        break;
      case text_field(8):
        for (const std::int64_t each : message.get_packed_int64()) attribute.ints.push_back(each);
        break;
      case text_field(9):
        attribute.strings.push_back(message.get_string());
        break;
      case number_field(20):
        attribute.type = message.get_int64();
        break;
      case text_field(21):
        attribute.reference = message.get_string();
        break;
      default:
        message.skip();
    }
  }
  return attribute;
}

void add_attribute(Message message, const Place& place, const std::string& owner, NodeAttributes& attributes) {
  std::string name;
  Attribute attribute = read_attribute(message, place, name);
  if (!attributes.emplace(name, std::move(attribute)).second)
    throw FileError(owner + " has attribute '" + name + "' twice");
}

Node read_node(Message message, const Place& place) {
  Node node;
  while (message.next()) {
    switch (message.tag_and_type()) {
      case text_field(1):
        node.inputs.push_back(message.get_string());
        break;
      case text_field(2):
        node.outputs.push_back(message.get_string());
        break;
      case text_field(3):
        node.name = message.get_string();
        break;
      case text_field(4):
        node.op = message.get_string();
        break;
      case text_field(5):
        add_attribute(message.get_message(), place, "node '" + node.shown() + "'", node.attributes);
        break;
      case text_field(7):
        node.domain = message.get_string();
        break;
      case text_field(8):
        node.overload = message.get_string();
        break;
      default:
        message.skip();
    }
  }
  if (node.domain == "ai.onnx") node.domain.clear();
  return node;
}

void read_size(Message message, Value& value) {
  std::int64_t size = -1;
  std::string name;
  while (message.next()) {
    switch (message.tag_and_type()) {
      case number_field(1):
        size = message.get_int64();
        break;
      case text_field(2):
        name = message.get_string();
        break;
      default:
        message.skip();
    }
  }
  value.sizes->push_back(size);
  value.names.push_back(size < 0 ? name : "");
}

void read_array_type(Message message, Value& value) {
  while (message.next()) {
    switch (message.tag_and_type()) {
      case number_field(1):
        value.element = message.get_int64();
        break;
      case text_field(2): {
        Message shape = message.get_message();
        value.sizes.emplace();
        value.names.clear();
        while (shape.next(1, protozero::pbf_wire_type::length_delimited)) read_size(shape.get_message(), value);
        break;
      }
      default:
        message.skip();
    }
  }
}

void read_type(Message message, Value& value) {
  while (message.next()) {
    switch (message.tag_and_type()) {
      case text_field(1):
        read_array_type(message.get_message(), value);
        break;
      case text_field(4):
        value.kind = "a sequence", message.skip();
        break;
      case text_field(5):
        value.kind = "a map", message.skip();
        break;
      case text_field(8):
        value.kind = "a sparse array", message.skip();
        break;
      case text_field(9):
        value.kind = "optional", message.skip();
        break;
      default:
        message.skip();
    }
  }
}

Value read_value(Message message) {
  Value value;
  while (message.next()) {
    switch (message.tag_and_type()) {
      case text_field(1):
        value.name = message.get_string();
        break;
      case text_field(2):
        read_type(message.get_message(), value);
        break;
      default:
        message.skip();
    }
  }
  return value;
}

Graph read_graph(Message message, const Place& outside) {
  constexpr int deepest = 32;  // limits the nesting, because the reader is recursive
  const Place place{outside.folder, outside.depth + 1};
  if (place.depth > deepest) throw FileError("graphs are nested more than " + std::to_string(deepest) + " deep");
  Graph graph;
  while (message.next()) {
    switch (message.tag_and_type()) {
      case text_field(1):
        graph.nodes.push_back(read_node(message.get_message(), place));
        break;
      case text_field(5):
        graph.initialisers.push_back(read_tensor(text_of(message.get_view()), place.folder));
        break;
      case text_field(11):
        graph.inputs.push_back(read_value(message.get_message()));
        break;
      case text_field(12):
        graph.outputs.push_back(read_value(message.get_message()));
        break;
      case text_field(15):
        throw FileError("sparse initialisers are not supported");
      default:
        message.skip();
    }
  }
  return graph;
}

/// Reads an OperatorSetIdProto. Sets the version unless it belongs to another domain.
void read_opset(Message message, std::int64_t& opset) {
  std::string domain;
  std::int64_t version = 0;
  while (message.next()) {
    switch (message.tag_and_type()) {
      case text_field(1):
        domain = message.get_string();
        break;
      case number_field(2):
        version = message.get_int64();
        break;
      default:
        message.skip();
    }
  }
  if (domain.empty() || domain == "ai.onnx") opset = version;
}

LocalFunction read_function(Message message, const Place& place) {
  LocalFunction function;
  while (message.next()) {
    switch (message.tag_and_type()) {
      case text_field(1):
        function.name = message.get_string();
        break;
      case text_field(4):
        function.inputs.push_back(message.get_string());
        break;
      case text_field(5):
        function.outputs.push_back(message.get_string());
        break;
      case text_field(7):
        function.nodes.push_back(read_node(message.get_message(), place));
        break;
      case text_field(9):
        read_opset(message.get_message(), function.opset);
        break;
      case text_field(10):
        function.domain = message.get_string();
        break;
      case text_field(11):
        add_attribute(message.get_message(), place, "function '" + function.name + "'", function.defaults);
        break;
      case text_field(13):
        function.overload = message.get_string();
        break;
      default:
        message.skip();
    }
  }
  return function;
}
}  // namespace

std::string function_key(const std::string& domain, const std::string& name, const std::string& overload) {
  return (domain.empty() || domain == "ai.onnx" ? "" : domain + ".") + name + (overload.empty() ? "" : ":" + overload);
}

File read_model(std::string_view bytes, const std::string& folder) {
  return undamaged([&] {
    File file;
    bool graph = false;
    Message message(bytes.data(), bytes.size());
    while (message.next()) {
      switch (message.tag_and_type()) {
        case text_field(7):
          graph = true;
          file.graph = read_graph(message.get_message(), Place{folder});
          break;
        case text_field(8):
          read_opset(message.get_message(), file.opset);
          break;
        case text_field(25): {
          LocalFunction function = read_function(message.get_message(), Place{folder});
          const std::string key = function_key(function.domain, function.name, function.overload);
          if (!file.functions.emplace(key, std::move(function)).second)
            throw FileError("there are two functions '" + key + "'");
          break;
        }
        default:
          message.skip();
      }
    }
    if (!graph) throw FileError("it has no graph, so it is not an ONNX model");
    return file;
  });
}

}  // namespace xtape::onnx
