/// Digests of the results and gradients of every op of the table, which all processors with fused multiply-adds share.
/// docs/reference/bits.md shows them, and is their golden file.
#pragma once

#include <array>
#include <cmath>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/arrays/visit.hpp"
#include "base/bytes/encodings.hpp"
#include "blocks.hpp"
#include "op_samples.hpp"
#include "xtape/grad.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"

namespace xtape::op_digests {

using op_samples::Sample;
using op_samples::Types;

/// Numbers that a counter determines (splitmix64). They need no function of the C library.
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : state_(seed << 32) {}
  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// A number between 0 and 1.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

/// The elements of inputs: between 0.05 and 0.95, between -4 and 4, or with a large diagonal. Ops have other domains,
/// so each plays those that it accepts.
enum class Values : std::uint8_t { positive, all, diagonal };
inline constexpr std::array every_values{Values::positive, Values::all, Values::diagonal};

inline Array drawn(const ValueType& type, Values values, std::int64_t indices, Numbers& numbers) {
  if (is_block(type.dtype))
    return rounded_to_blocks(type.dtype, type.shape,
                             [&](std::int64_t) { return static_cast<float>(8 * numbers.uniform() - 4); });
  Array array(type.dtype, type.shape);
  const std::int64_t columns = type.shape.empty() ? 1 : type.shape.back();
  const bool square = type.shape.size() >= 2 && type.shape[type.shape.size() - 2] == columns;
  visit_elements(array, [&](auto* elements) {
    using T = std::remove_reference_t<decltype(*elements)>;
    for (std::int64_t i = 0; i < array.count(); ++i)
      if constexpr (std::is_same_v<T, bool>) {
        elements[i] = numbers.next() % 2 == 0 || indices == 1;
      } else if constexpr (std::is_integral_v<T>) {
        elements[i] = static_cast<T>(numbers.next() % static_cast<std::uint64_t>(indices));
      } else {
        const double u = numbers.uniform();
        const bool large = values == Values::diagonal && square && i / columns % columns == i % columns;
        elements[i] =
            static_cast<T>(values == Values::positive ? 0.05 + 0.9 * u : 8 * u - 4 + (large ? 9.0 * columns : 0));
      }
  });
  return array;
}

/// The checksum of an array's elements. All NaN are equal, because processors make NaN of different bits.
inline std::uint64_t digest_of(const ArrayView& view) {
  Array array(view);
  visit_floats(array, [&](auto* elements) {
    for (std::int64_t i = 0; i < array.count(); ++i)
      if (elements[i] != elements[i])
        elements[i] = std::numeric_limits<std::remove_reference_t<decltype(*elements)>>::quiet_NaN();
  });
  return checksum_of_piece(array.data(), array.bytes());
}

/// A call of an op with its gradients. Throws Error if the op does not accept the sample.
struct Recorded {
  Tape tape{Mode::train};
  Vars inputs, results;
  std::vector<Array> cotangents;

  Recorded(const Op& op, const Sample& sample, Dtype dtype, Numbers& numbers) {
    tape.set_default_dtype(dtype);
    for (const ValueType& type : sample.inputs)
      inputs.push_back(
          tape.input("x" + std::to_string(inputs.size()), type.shape, is_floating(type.dtype) ? dtype : type.dtype));
    results = apply(tape, op, {inputs.begin(), inputs.end()}, sample.attributes);
    Vars outputs, by;
    for (const Var& input : inputs)
      if (input.dtype() == dtype) by.push_back(input);
    for (const Var& result : results)
      if (is_floating(result.dtype())) outputs.push_back(result);
    if (!op.differentiable || outputs.empty() || by.empty()) return;
    Vars given;
    for (const Var& output : outputs) cotangents.push_back(drawn(output.type(), Values::all, 1, numbers));
    for (const Array& cotangent : cotangents) given.push_back(tape.constant(ArrayView(cotangent)));
    for (const Var& gradient : grad(outputs, by, given, {.materialize_grads = true})) results.push_back(gradient);
  }
};

/// Plays a call on values of each kind that it accepts. Returns the digest of all results, or an empty text if the op
/// does not accept the sample. Throws Error if planning refuses Bits::same, and std::logic_error if the op plays no
/// values.
inline std::string digest(const Op& op, const Sample& sample, Dtype dtype) {
  Numbers numbers(dtype == Dtype::float64 ? 2 : 1);
  std::optional<Recorded> made;
  try {
    made.emplace(op, sample, dtype, numbers);
  } catch (const Error&) {
    return "";
  }
  if (made->results.empty()) return "";
  PlayerOptions options;
  options.threads = 2;
  options.seed = 7;
  options.bits = Bits::same;
  Player player(made->tape, made->results, options);
  std::vector<std::uint64_t> digests;
  std::string refusal;
  for (const Values values : every_values) {
    bool played = false;
    for (const std::int64_t indices : {7, 2, 1}) {  // indices are below it; with 1, conditions are true
      std::vector<Array> arrays;
      std::vector<Feed> feeds;
      for (const Var& input : made->inputs) arrays.push_back(drawn(input.type(), values, indices, numbers));
      for (std::size_t i = 0; i < arrays.size(); ++i) feeds.emplace_back(made->inputs[i], arrays[i]);
      try {
        player.play(feeds, 3);
        played = true;
        break;
      } catch (const Error& error) {
        refusal = error.what();
      }
    }
    if (!played) continue;
    for (const Var& result : made->results) digests.push_back(digest_of(player.view(result)));
  }
  if (digests.empty()) throw std::logic_error("op '" + op.name + "' plays no values: " + refusal);
  char text[9];
  std::snprintf(text, sizeof text, "%08x", static_cast<unsigned>(checksum_of_pieces(digests) >> 32));
  return text;
}

/// The sample with all sizes multiplied by the largest of these factors that the op accepts. Odd sizes leave parts of
/// registers and of blocks.
inline std::optional<Sample> enlarged(const Op& op, const Sample& sample) {
  constexpr double most = 2e5;
  for (const std::int64_t factor : {23, 7, 3}) {
    Sample large = sample;
    double elements = 0;
    for (ValueType& type : large.inputs) {
      double count = 1;
      for (std::int64_t& size : type.shape) count *= static_cast<double>(size *= factor);
      elements += count;
    }
    if (const Attribute* shape = large.attributes.find("shape"); large.inputs.empty() && shape != nullptr) {
      auto sizes = std::get<op_samples::Sizes>(*shape);
      for (std::int64_t& size : sizes) size *= factor;
      large.attributes.set("shape", sizes);
    }
    if (elements <= most && op_samples::is_valid(op, large)) return large;
  }
  return std::nullopt;
}

/// The kinds of digests of an op, the columns of the table.
struct Column {
  const char* name;
  Dtype dtype;
  bool large;
};
inline constexpr std::array<Column, 4> columns{{{"float32, small", Dtype::float32, false},
                                                {"float32, large", Dtype::float32, true},
                                                {"float64, small", Dtype::float64, false},
                                                {"float64, large", Dtype::float64, true}}};

/// The cells of an op's row: its name, and a digest for each column. If planning refuses Bits::same, the reason stands
/// in the first of them.
inline std::vector<std::string> row_of(const Op& op) {
  std::vector<std::string> cells{"`" + op.name + "`"};
  const Sample small = op_samples::sample_of(op);
  const std::optional<Sample> large = enlarged(op, small);
  try {
    for (const Column& column : columns)
      cells.push_back(!column.large ? digest(op, small, column.dtype) : large ? digest(op, *large, column.dtype) : "");
  } catch (const Error& error) {
    const std::string text = error.what();
    const std::size_t first = text.find('\'');  // after the place and the op
    cells.resize(1);
    cells.push_back(text.substr(first, text.find(", which bits") - first));
  }
  cells.resize(1 + columns.size());
  return cells;
}

}  // namespace xtape::op_digests
