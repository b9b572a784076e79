/// Plays tapes that come from damaged files: whatever a file can say, playing gives values or an Error.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "xtape/op/op.hpp"
#include "xtape/player.hpp"

namespace xtape::fuzz {

/// The elements that a play computes, roughly; bodies count once for each step.
inline double work_of(const Tape& tape) {
  double work = 0;
  for (std::size_t i = 0; i < tape.size(); ++i) {
    const Node& node = tape.node(i);
    for (const ValueType& type : node.outputs) {
      double count = 1;
      for (const std::int64_t size : type.shape) count *= static_cast<double>(std::max<std::int64_t>(size, 1));
      work += count;
    }
    const Attribute* length = node.attributes.find("length");
    const auto* steps = length != nullptr ? std::get_if<std::int64_t>(length) : nullptr;
    if (node.body) work += work_of(*node.body) * (steps != nullptr ? 1 + static_cast<double>(*steps) : 1);
  }
  return work;
}

/// Plays all values of a small tape on zeros, with all passes and by the reference. Errors are expected.
inline void play_if_small(const Tape& tape) {
  if (work_of(tape) > 1e5) return;
  Vars outputs;
  std::vector<Array> arrays;
  std::vector<Feed> feeds;
  const std::vector<Carry> states = tape.states();
  for (std::size_t i = 0; i < tape.size(); ++i) {
    const Node& node = tape.node(i);
    for (std::size_t k = 0; k < node.outputs.size(); ++k)
      outputs.push_back(tape.var({static_cast<std::int32_t>(i), static_cast<std::int32_t>(k)}));
    const auto carried = [&](const Carry& state) { return state.input.id().node == static_cast<std::int32_t>(i); };
    if (node.op != &input_op() || std::any_of(states.begin(), states.end(), carried)) continue;
    arrays.emplace_back(node.outputs[0].dtype, node.outputs[0].shape);
    feeds.emplace_back(tape.var({static_cast<std::int32_t>(i), 0}), arrays.back());
  }
  if (outputs.empty()) return;
  for (const bool reference : {false, true}) {
    PlayerOptions options;
    options.threads = 1;
    options.carries = states;
    if (reference) options.passes = Passes::reference();
    try {
      Player player(tape, outputs, options);
      player.play(feeds);
    } catch (const Error&) {
    }
  }
}

}  // namespace xtape::fuzz
