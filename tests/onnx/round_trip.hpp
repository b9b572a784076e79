/// Writes a tape as an ONNX file, reads it back, and compares what both play. With the variable XTAPE_ONNX_WRITTEN, the
/// files and their numbers stay in that folder, where tests/golden/scripts/onnx_written.py has them judged by ONNX's
/// checker and ONNX Runtime.
#pragma once

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/arrays/visit.hpp"
#include "written.hpp"
#include "xtape/ops.hpp"
#include "xtape/safetensors.hpp"

namespace xtape::round_trip {

inline std::vector<double> doubles(const ArrayView& view) {
  Tape tape;
  const Array wide = evaluate(cast(tape.constant(view), Dtype::float64));
  return {wide.as<double>(), wide.as<double>() + wide.count()};
}

struct Distance {
  double most = 0, largest = 0;
  double part() const { return most == 0 ? 0 : most / largest; }
};

/// Adds the largest difference, infinite for other shapes, dtypes, or infinite numbers, and the largest number.
inline void compare(const ArrayView& is, const ArrayView& should, Distance& distance) {
  if (is.shape() != should.shape() || is.dtype() != should.dtype()) {
    distance.most = INFINITY;
    return;
  }
  const std::vector<double> a = doubles(is), b = doubles(should);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isfinite(b[i])) distance.largest = std::max(distance.largest, std::abs(b[i]));
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    distance.most =
        std::max(distance.most, std::isfinite(a[i]) && std::isfinite(b[i]) ? std::abs(a[i] - b[i]) : INFINITY);
  }
}

/// Numbers in [1 / 4, 7 / 4], small integers of both signs for int8, ones of the smallest indices, or bools.
inline Array numbers_for(const ValueType& type, int seed) {
  Array array(type.dtype, type.shape);
  visit_elements(array, [&]<class T>(T* elements) {
    for (std::int64_t i = 0; i < array.count(); ++i) {
      const std::int64_t k = (i * 5 + seed) % 7;
      if constexpr (std::is_same_v<T, bool>)
        elements[i] = k % 2 == 0;
      else if constexpr (std::is_integral_v<T>)
        elements[i] = static_cast<T>(std::is_same_v<T, std::int8_t> ? k - 3 : k % 2);
      else
        elements[i] = static_cast<T>(0.25F * static_cast<float>(1 + k));
    }
  });
  return array;
}

struct Folder {
  const char* kept = std::getenv("XTAPE_ONNX_WRITTEN");
  Scratch scratch;
  std::string folder() const { return kept != nullptr ? kept : scratch.folder; }
  std::string path(const std::string& name) const { return folder() + "/" + name + ".onnx"; }

  /// The largest difference of what the file plays to what the tape plays, as a part of the largest number.
  double part_of_largest(const std::string& name, const NamedVars& inputs, const NamedVars& outputs,
                         OnnxSaveOptions options = {}, const Store& fed = {}) const {
    options.inputs = inputs;
    save_onnx(path(name), outputs, options);
    return part_of_file(name, inputs, outputs, fed);
  }
  /// The same for a file that is there.
  double part_of_file(const std::string& name, const NamedVars& inputs, const NamedVars& outputs,
                      const Store& fed = {}) const {
    Tape copy;
    Vars wanted, given;
    std::vector<Feed> feeds, copy_feeds;
    Store arrays;
    for (const auto& [input, var] : inputs) {
      const Array* array = fed.find(input);
      arrays.add("in." + input,
                 array != nullptr ? Array(*array) : numbers_for(var.type(), static_cast<int>(feeds.size())));
      feeds.emplace_back(var, arrays.at("in." + input));
      given.push_back(copy.input(input, var.shape(), var.dtype()));
      copy_feeds.emplace_back(given.back(), arrays.at("in." + input));
    }
    for (const auto& [output, var] : outputs) wanted.push_back(var);
    PlayerOptions threads;
    threads.threads = 1;
    Player player(outputs[0].value.tape(), wanted, threads);
    player.play(feeds);
    for (std::size_t i = 0; i < wanted.size(); ++i) arrays.add("out." + outputs[i].name, Array(player.view(wanted[i])));
    if (kept != nullptr) save_arrays(folder() + "/" + name + ".safetensors", arrays);
    const OnnxModel model = open_onnx(path(name));
    for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(model.outputs()[i].name == outputs[i].name);
    const Vars results = model.record(copy, given);
    Player again(copy, results, threads);
    again.play(copy_feeds);
    Distance distance;
    for (std::size_t i = 0; i < wanted.size(); ++i) compare(again.view(results[i]), player.view(wanted[i]), distance);
    return distance.part();
  }
};

}  // namespace xtape::round_trip
