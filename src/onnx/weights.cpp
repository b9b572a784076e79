// Writes weights back into the file from which they came.
#include <protozero/pbf_writer.hpp>

#include "base/arrays/elements.hpp"
#include "base/messages/wording.hpp"
#include "base/system/files.hpp"
#include "onnx/graph_recording.hpp"
#include "onnx/wire.hpp"
#include "onnx/writing.hpp"
#include "xtape/onnx.hpp"

namespace xtape {

using onnx::Element;
using onnx::Message;
using onnx::text_field;
using onnx::text_of;
using onnx::WrittenTensor;

namespace {
/// Calls see(tag_and_type, bytes of the whole field, content) for every field of a message. The content is empty unless
/// the field is length-delimited.
template <class See>
void for_each_field(std::string_view bytes, const See& see) {
  Message message(bytes.data(), bytes.size());
  while (true) {
    const char* begin = message.data().data();
    if (!message.next()) return;
    const std::uint32_t tag = static_cast<std::uint32_t>(message.tag_and_type());
    std::string_view content;
    if (message.wire_type() == protozero::pbf_wire_type::length_delimited)
      content = text_of(message.get_view());
    else
      message.skip();
    const char* end = message.data().data();
    see(tag, std::string_view(begin, static_cast<std::size_t>(end - begin)), content);
  }
}

/// Returns the fields of a TensorProto that do not hold its elements.
std::string without_elements(std::string_view bytes) {
  std::string kept;
  for_each_field(bytes, [&](std::uint32_t tag, std::string_view field, std::string_view) {
    const std::uint32_t number = tag >> 3;
    const bool elements = (number >= 4 && number <= 7) || (number >= 9 && number <= 11) || number == 13 || number == 14;
    if (!elements) kept += field;
  });
  return kept;
}

bool is_external(std::string_view bytes) {
  bool external = false;
  for_each_field(bytes,
                 [&](std::uint32_t tag, std::string_view, std::string_view) { external |= tag == text_field(13); });
  return external;
}

/// Returns the weight in the element type of the file.
Array converted(const Array& weight, const onnx::Tensor& old) {
  if (weight.shape() != old.array.shape())
    throw ShapeError("initialiser '" + old.name + "' has the shape " + to_string(old.array.shape()) + ", the weight " +
                     to_string(weight.shape()));
  if (weight.dtype() == old.array.dtype()) return Array(weight);
  if (!is_floating(weight.dtype()) || !is_floating(old.array.dtype()))
    throw DtypeError("initialiser '" + old.name + "' is " + name_of(old.array.dtype()) + ", the weight " +
                     name_of(weight.dtype()));
  Array array(old.array.dtype(), weight.shape());
  convert_floats(weight, array);
  return array;
}

struct Rewritten {
  std::string model, graph;  // fields of the model without the graph; fields of the graph without the initialisers
  std::vector<WrittenTensor> tensors;
  std::set<std::string> replaced;  // the names of the replaced initialisers
};

Element element_in(std::string_view bytes) {
  std::int64_t element = 0;
  onnx::read_fields(Message(bytes.data(), bytes.size()), onnx::read_integer(2, element));
  return static_cast<Element>(element);
}

/// Writes an initialiser with its new weight, or unchanged if it has none. External data is read, because the new file
/// may be in another folder.
void rewrite_tensor(std::string_view bytes, std::string_view field, const std::string& path, const Store& weights,
                    Rewritten& to) {
  std::string name;
  for_each_field(bytes, [&](std::uint32_t tag, std::string_view, std::string_view content) {
    if (tag == text_field(8)) name = content;
  });
  const Array* weight = weights.find(name);
  if (weight == nullptr && !is_external(bytes)) {
    to.graph += field;
    return;
  }
  const onnx::Tensor old = onnx::read_tensor(bytes, path);
  if (onnx::element_of(old.array.dtype()) != old.element)
    throw DtypeError("initialiser '" + name + "' has the element type " +
                     std::to_string(static_cast<std::int32_t>(old.element)) +
                     ", which can be kept only where it is in the file itself");
  to.tensors.push_back({without_elements(bytes), weight == nullptr ? Array(old.array) : converted(*weight, old)});
  to.replaced.insert(name);
}

Rewritten rewritten(std::string_view bytes, const std::string& path, const Store& weights) {
  return onnx::undamaged([&] {
    Rewritten to;
    bool has_graph = false;
    for_each_field(bytes, [&](std::uint32_t tag, std::string_view field, std::string_view content) {
      if (tag != text_field(7)) {
        to.model += field;
        return;
      }
      if (has_graph) throw FileError("it has two graphs");
      has_graph = true;
      for_each_field(content, [&](std::uint32_t inner, std::string_view inner_field, std::string_view tensor) {
        if (inner == text_field(5))
          rewrite_tensor(tensor, inner_field, path, weights, to);
        else
          to.graph += inner_field;
      });
    });
    if (!has_graph) throw FileError("it has no graph, so it is not an ONNX model");
    return to;
  });
}
}  // namespace

std::string onnx::without_weights(std::string_view bytes, const std::string& path) {
  return undamaged([&] {
    std::string model, graph;
    protozero::pbf_writer to_graph(graph);
    for_each_field(bytes, [&](std::uint32_t tag, std::string_view field, std::string_view content) {
      if (tag != text_field(7)) {
        model += field;
        return;
      }
      for_each_field(content, [&](std::uint32_t inner, std::string_view inner_field, std::string_view tensor) {
        if (inner != text_field(5)) {
          graph += inner_field;
        } else if (!is_floating(dtype_of_element(static_cast<std::int64_t>(element_in(tensor)), "an array"))) {
          if (!is_external(tensor)) {
            graph += inner_field;
            return;
          }
          const Tensor read = read_tensor(tensor, path);
          std::string inside = tensor_of({read.name, Array(read.array)}).fields;
          protozero::pbf_writer(inside).add_bytes(9, static_cast<const char*>(read.array.data()), read.array.bytes());
          to_graph.add_message(5, inside);
        }
      });
    });
    protozero::pbf_writer(model).add_message(7, graph);
    return model;
  });
}

void save_onnx_weights(const std::string& path, const std::string& original, const Store& weights,
                       std::uint64_t largest_file) {
  const std::string bytes = read_file(original);
  Rewritten file;
  try {
    file = rewritten(bytes, original, weights);
    std::vector<std::string> missing;
    for (const auto& weight : weights)
      if (file.replaced.count(weight.name) == 0) missing.push_back("'" + weight.name + "'");
    if (!missing.empty()) throw Error("the model has no initialisers " + joined(missing));
  } catch (Error& error) {
    error.name_location(original);
    throw;
  }
  onnx::write_model(path, file.model, file.graph, file.tensors, largest_file);
}

}  // namespace xtape
