/// What tests of files of single ops share.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "op_samples.hpp"
#include "ops/recording/op_helpers.hpp"
#include "xtape/onnx.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"

namespace xtape {

/// Whether operators of ONNX write all calls of a tape that have no expansion.
inline bool can_be_written(const Tape& tape) {
  static const std::vector<std::string> names = onnx_written_ops();
  static const std::set<std::string> written(names.begin(), names.end());
  for (std::size_t i = 0; i < tape.size(); ++i) {
    const Node& node = tape.node(i);
    if (node.op->is_source() || written.count(node.op->name) == 1) continue;
    if (!node.op->expand) return false;
    Tape apart(Mode::eval);
    Vars inputs;
    for (const ValueId id : node.inputs)
      inputs.push_back(apart.input("x" + std::to_string(inputs.size()), tape.type(id).shape, tape.type(id).dtype));
    expansion(node, apart, inputs);
    if (!can_be_written(apart)) return false;
  }
  return true;
}
/// Whether a file can have the op. It cannot have random numbers, factorisations of matrices, some special functions,
/// and shifts of signed integers.
inline bool can_be_written(const Op& op) {
  return can_be_written(op_samples::recorded_by(op, op_samples::sample_of(op)));
}

/// Inputs of an op that numbers_for does not suit, by name.
inline Store fed_to(const std::string& op, Dtype dtype) {
  const auto floats = [&](const Shape& shape, std::initializer_list<float> numbers) {
    Array array(Dtype::float32, shape);
    for (std::int64_t i = 0; i < array.count(); ++i)
      array.as<float>()[i] = numbers.begin()[i % static_cast<std::int64_t>(numbers.size())];
    return evaluate(cast(Tape().constant(array), dtype));
  };
  const auto integers = [](const Shape& shape, std::int64_t number) {
    Array array(Dtype::int64, shape);
    std::fill_n(array.as<std::int64_t>(), array.count(), number);
    return array;
  };
  Store store;
  if (op == "bucketize" || op == "histogram") store.add("x1", floats({3}, {0.25F, 0.5F, 1}));
  if (op == "nanquantile" || op == "quantile") store.add("x1", floats({3}, {0, 0.25F, 0.75F}));
  if (op == "root_of_squares") {
    store.add("x0", floats({3, 3}, {0, 1, 0}));
    store.add("x1", floats({3}, {1}));
  }
  if (op == "searchsorted") store.add("x0", floats({3, 3}, {0, 0.5F, 1}));
  if (op == "watch") {
    Array yes(Dtype::boolean, {3, 3});
    std::fill_n(yes.as<bool>(), yes.count(), true);
    store.add("x1", std::move(yes));
  }
  if (op == "ctc_loss") {
    store.add("x1", integers({2, 2}, 1));
    store.add("x2", integers({2}, 3));
    store.add("x3", integers({2}, 1));
  }
  return store;
}

}  // namespace xtape
