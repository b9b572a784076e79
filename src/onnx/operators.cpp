#include "onnx/operators.hpp"

#include <map>

namespace xtape::onnx {

namespace {
const std::map<std::string, Operator>& table() {
  static const std::map<std::string, Operator> all = [] {
    std::map<std::string, Operator> made;
    for (const Operators* family :
         {&elementwise_operators(), &constant_operators(), &control_operators(), &reduction_operators(),
          &shape_operators(), &indexing_operators(), &product_operators(), &norm_operators(), &recurrent_operators(),
          &resampling_operators(), &scattering_operators(), &attention_operators()})
      for (const Operator& each : *family) made.emplace(each.name, each);
    return made;
  }();
  return all;
}
}  // namespace

const Operator* find_operator(const std::string& name) {
  const auto found = table().find(name);
  return found == table().end() ? nullptr : &found->second;
}

std::vector<std::string> operator_names() {
  std::vector<std::string> names;
  for (const auto& [name, each] : table()) names.push_back(name);
  return names;
}

}  // namespace xtape::onnx
