/// Writes ONNX files for tests.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <vector>

#include "xtape/onnx.hpp"
#include "xtape/player.hpp"
#include "xtape/xtensor.hpp"

namespace xtape {
using Integers = std::vector<std::int64_t>;
using protozero::pbf_writer;

/// Writes messages: fields by number, each a message of its own.
template <class Write>
std::string message(const Write& write) {
  std::string bytes;
  pbf_writer writer(bytes);
  write(writer);
  return bytes;
}

inline std::string attribute(const std::string& name, std::int64_t number) {
  return message([&](pbf_writer& to) {
    to.add_string(1, name);
    to.add_int64(3, number);
    to.add_int64(20, 2);
  });
}

inline std::string attribute(const std::string& name, const Integers& numbers) {
  return message([&](pbf_writer& to) {
    to.add_string(1, name);
    to.add_packed_int64(8, numbers.begin(), numbers.end());
    to.add_int64(20, 7);
  });
}

inline std::string node(const std::string& op, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs, const std::vector<std::string>& attributes = {},
                        const std::string& name = "") {
  return message([&](pbf_writer& to) {
    for (const std::string& each : inputs) to.add_string(1, each);
    for (const std::string& each : outputs) to.add_string(2, each);
    to.add_string(3, name);
    to.add_string(4, op);
    for (const std::string& each : attributes) to.add_message(5, each);
  });
}

inline std::string floats(const std::string& name, const Integers& shape, const std::vector<float>& numbers) {
  return message([&](pbf_writer& to) {
    to.add_packed_int64(1, shape.begin(), shape.end());
    to.add_packed_float(4, numbers.begin(), numbers.end());
    to.add_int32(2, 1);  // after the elements, as the order of fields is free
    to.add_string(8, name);
  });
}

inline std::string integers(const std::string& name, const Integers& numbers) {
  return message([&](pbf_writer& to) {
    to.add_int64(1, static_cast<std::int64_t>(numbers.size()));
    to.add_int32(2, 7);
    to.add_string(8, name);
    to.add_bytes(9, reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(std::int64_t));
  });
}

/// An input or output of floats; without sizes, of any shape. -1: any size.
/// `element` is the number of the element type: 1 is float.
inline std::string value(const std::string& name, const std::optional<Integers>& sizes = std::nullopt,
                         int element = 1) {
  const std::string shape = message([&](pbf_writer& to) {
    for (const std::int64_t size : sizes.value_or(Integers{}))
      to.add_message(1, message([&](pbf_writer& dim) { size < 0 ? dim.add_string(2, "n") : dim.add_int64(1, size); }));
  });
  const std::string array = message([&](pbf_writer& to) {
    to.add_int32(1, element);
    if (sizes) to.add_message(2, shape);
  });
  return message([&](pbf_writer& to) {
    to.add_string(1, name);
    to.add_message(2, message([&](pbf_writer& type) { type.add_message(1, array); }));
  });
}

struct Written {
  std::int64_t opset = 13;
  std::vector<std::string> nodes, initialisers = {};
  std::vector<std::string> inputs = {value("x")}, outputs = {value("y")};

  std::string graph() const {
    return message([&](pbf_writer& to) {
      for (const std::string& each : nodes) to.add_message(1, each);
      for (const std::string& each : initialisers) to.add_message(5, each);
      for (const std::string& each : inputs) to.add_message(11, each);
      for (const std::string& each : outputs) to.add_message(12, each);
    });
  }
  std::string bytes() const {
    return message([&](pbf_writer& to) {
      to.add_int64(1, 8);
      to.add_message(7, graph());
      to.add_message(8, message([&](pbf_writer& version) { version.add_int64(2, opset); }));
    });
  }
};

/// An attribute that is the graph of `inside`.
inline std::string attribute(const std::string& name, const Written& inside) {
  return message([&](pbf_writer& to) {
    to.add_string(1, name);
    to.add_message(6, inside.graph());
    to.add_int64(20, 5);
  });
}

struct Scratch {
  std::string folder;
  explicit Scratch(const std::string& name = "")
      : folder((std::filesystem::temp_directory_path() / ("xtape-onnx-" + std::to_string(getpid()) + name)).string()) {
    std::filesystem::create_directory(folder);
  }
  ~Scratch() { std::filesystem::remove_all(folder); }
  OnnxModel open(const std::string& bytes, const OnnxOptions& options = {}) const {
    std::ofstream(folder + "/model.onnx", std::ios::binary) << bytes;
    return open_onnx(folder + "/model.onnx", options);
  }
  OnnxModel open(const Written& written, const OnnxOptions& options = {}) const {
    return open(written.bytes(), options);
  }
  /// The error of opening, without the path.
  std::string error(const std::string& bytes) const {
    try {
      open(bytes);
    } catch (const Error& error) {
      const std::string what = error.what(), path = folder + "/model.onnx: ";
      CHECK(what.find(path) == 0);
      return what.substr(std::min(path.size(), what.size()));
    }
    return "";
  }
};

/// The result for x.
template <class T>
xt::xarray<T> played(const OnnxModel& model, const xt::xarray<T>& x) {
  Tape tape;
  const Var input = tape.input("x", Shape(x.shape().begin(), x.shape().end()), dtype_of<T>());
  const Vars y = model.record(tape, {input});
  Player player(tape, y);
  player.play({{input, x}});
  return player.value<T>(y[0]);
}

}  // namespace xtape
