/// Digests of ONNX files that depend neither on the order of nodes nor on names: a compiler may evaluate the arguments
/// of a call in any order, and so record and write their nodes in any order.
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <sstream>
#include <string>

#include "onnx/messages.hpp"
#include "xtape/layout.hpp"

namespace xtape::special_values {

inline std::string hash_of(const std::string& bytes) {
  std::uint64_t value = 0xCBF29CE484222325;
  for (const char each : bytes) value = (value ^ static_cast<unsigned char>(each)) * 0x100000001B3;
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

/// The hashes of values, by name.
using Hashes = std::map<std::string, std::string>;

inline std::string text_of(const onnx::Value& value) {
  std::ostringstream text;
  text << value.kind << ' ' << value.element;
  if (value.sizes)
    for (const std::int64_t size : *value.sizes) text << ' ' << size;
  for (const std::string& name : value.names) text << ' ' << name;
  return text.str();
}
inline std::string text_of(const onnx::Tensor& tensor) {
  std::ostringstream text;
  text << static_cast<int>(tensor.element) << ' ' << to_string(tensor.array.shape()) << ' ';
  text.write(static_cast<const char*>(tensor.array.data()), static_cast<std::streamsize>(tensor.array.bytes()));
  return text.str();
}

/// The hash of the results of a graph. A graph inside a node can use the values outside.
inline std::string digest_of(const onnx::Graph& graph, Hashes values = {}, int depth = 0) {
  for (std::size_t i = 0; i < graph.inputs.size(); ++i)
    values[graph.inputs[i].name] =
        "input " + std::to_string(i) + " of " + std::to_string(depth) + ": " + text_of(graph.inputs[i]);
  for (const onnx::Tensor& each : graph.initialisers) values[each.name] = hash_of(text_of(each));
  for (const onnx::Node& node : graph.nodes) {
    std::ostringstream text;
    text.precision(17);
    text << node.domain << ' ' << node.op;
    for (const std::string& input : node.inputs) text << " (" << (input.empty() ? "" : values.at(input)) << ')';
    for (const auto& [name, a] : node.attributes) {
      text << ' ' << name << ' ' << a.type << ' ' << a.f << ' ' << a.i << ' ' << a.s;
      if (a.type == onnx::Attribute::tensor) text << ' ' << text_of(a.t);
      for (const double each : a.floats) text << ' ' << each;
      for (const std::int64_t each : a.ints) text << ' ' << each;
      for (const std::string& each : a.strings) text << ' ' << each;
      if (a.g) text << ' ' << digest_of(*a.g, values, depth + 1);
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      values[node.outputs[i]] = hash_of(text.str() + " output " + std::to_string(i));
  }
  std::string results;
  for (const onnx::Value& each : graph.outputs) results += values.at(each.name) + ' ' + text_of(each) + '\n';
  return hash_of(results);
}

inline std::string digest_of(const onnx::File& file) {
  return hash_of(std::to_string(file.opset) + ' ' + digest_of(file.graph));
}

}  // namespace xtape::special_values
