// A model's weights in files.
#include <algorithm>

#include "model_data.hpp"
#include "nearest.hpp"
#include "xtape/safetensors.hpp"

namespace xtape {

namespace {
template <class From, class To>
void convert_elements(const Array& from, Array& to) {
  std::transform(from.as<From>(), from.as<From>() + from.count(), to.as<To>(),
                 [](From value) { return static_cast<To>(value); });
}

/// Between float widths.
void convert(const Array& from, Array& to) {
  if (from.dtype() == to.dtype()) {
    to.assign(from);
  } else if (from.dtype() == Dtype::float64) {
    convert_elements<double, float>(from, to);
  } else {
    convert_elements<float, double>(from, to);
  }
}
}  // namespace

void Model::save_weights(const std::string& path) const {
  save_arrays(path, weights(), {{"format", "pt"}, {"model", name()}});
}

void Model::load_weights(const std::string& path) {
  const Store file = load_arrays(path);
  std::vector<std::string> names;
  for (const Store::Entry& entry : weights().entries()) names.push_back(entry.name);
  std::string problems;
  for (const Store::Entry& entry : weights().entries()) {
    const Array* array = file.find(entry.name);
    if (array == nullptr) {
      problems += "\n  missing: " + entry.name + " " + to_string(entry.array.shape());
    } else if (array->shape() != entry.array.shape()) {
      problems += "\n  of another shape: " + entry.name + " is " + to_string(array->shape()) + ", the model's is " +
                  to_string(entry.array.shape());
    } else if (!is_floating(array->dtype())) {
      problems += "\n  of another dtype: " + entry.name + " is " + name_of(array->dtype()) + ", weights are floats";
    }
  }
  for (const Store::Entry& entry : file.entries())
    if (weights().find(entry.name) == nullptr)
      problems += "\n  unexpected: " + entry.name + did_you_mean(entry.name, names);
  if (!problems.empty()) throw FileError("the weights in '" + path + "' do not fit model '" + name() + "':" + problems);
  for (const Store::Entry& entry : weights().entries()) {
    Array shared = entry.array;
    convert(file.at(entry.name), shared);
  }
}

}  // namespace xtape
