/// Tapes for plans within memory budgets, and the best of all plans.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <queue>
#include <random>
#include <string>

#include "allocations.hpp"
#include "player/plan/budget.hpp"
#include "player/plan/memory.hpp"
#include "xtape/grad.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"
#include "xtape/scan.hpp"
#include "xtape/xtensor.hpp"

namespace xtape::test {

// Exhaustive search --------------------------------------------------------------------------------------------------

/// An op with any number of inputs, any size and any cost: element i is 1 plus the elements i of all inputs, where
/// these repeat.
const Op& mix_op() {
  static const Op entry = [] {
    Op op;
    op.name = "mix";
    op.doc = "Sums its inputs.";
    op.inputs = {{"xs", Accept::any, Arity::many}};
    op.attributes = {{"size", AttributeType::integer, "Of the output.", std::nullopt},
                     {"flops", AttributeType::number, "That it pretends to need.", std::nullopt}};
    op.shape = [](const OpCall& call) { return std::vector<ValueType>{{Dtype::float32, {call.integer("size")}}}; };
    op.lowering.cost.flops = [](const OpCall& call) { return call.number("flops"); };
    op.lowering.kernel = [](const KernelCall& call) {
      std::vector<std::int64_t> counts;
      for (const ValueType& type : call.inputs) counts.push_back(count_of(type.shape));
      return Kernel{[counts, size = call.integer("size")](const KernelArguments& arguments) {
        auto* out = static_cast<float*>(arguments.out[0]);
        std::fill_n(out, size, 1.f);
        for (std::size_t k = 0; k < counts.size(); ++k)
          for (std::int64_t i = 0; i < size; ++i) out[i] += static_cast<const float*>(arguments.in[k])[i % counts[k]];
      }};
    };
    return op;
  }();
  return entry;
}

/// A random tape of 20 nodes like those of a gradient: nodes that each read one or two before them, then as many that
/// read the last one and one of the first half.
struct RandomTape {
  struct Item {
    std::vector<int> inputs;  // items
    std::size_t bytes = 0;
    double seconds = 0;
  };
  Tape tape;
  Var x = tape.parameter("x", Array(Dtype::float32, {16}));
  Vars vars;
  std::vector<Item> items;

  explicit RandomTape(unsigned seed) : generator_(seed) {
    constexpr int half = 10;
    for (int i = 0; i < half; ++i) {
      std::vector<int> inputs;
      if (i > 0) inputs.push_back(i - 1);
      if (i > 1 && pick(0, 2) == 0) inputs.push_back(pick(0, i - 2));
      add(inputs, std::int64_t{256} * pick(1, 8));
    }
    for (int i = half; i < 2 * half; ++i) {
      std::vector<int> inputs{i - 1};
      const int twin = 2 * half - 1 - i;
      if (twin != i - 1) inputs.push_back(pick(0, 4) == 0 ? pick(0, half - 2) : twin);
      add(inputs, i + 1 == 2 * half ? 1 : std::int64_t{256} * pick(1, 4));
    }
  }

  const Var& output() const { return vars[vars.size() - 1]; }

  /// Takes the predicted times of the steps of the plan, which are the items in order.
  void time(const Plan& plan) {
    REQUIRE(plan.steps.size() == items.size());
    for (std::size_t i = 0; i < items.size(); ++i) items[i].seconds = plan.steps[i].seconds;
  }

 private:
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(generator_); }
  void add(std::vector<int> inputs, std::int64_t size) {
    std::vector<Operand> operands;
    for (const int i : inputs) operands.emplace_back(vars[static_cast<std::size_t>(i)]);
    if (operands.empty()) operands.emplace_back(x);
    const double flops = pick(0, 3) == 0 ? 1e6 * pick(1, 10) : 1e5 * pick(1, 10);
    vars.push_back(apply(mix_op(), operands, {{"size", size}, {"flops", flops}})[0]);
    items.push_back({std::move(inputs), static_cast<std::size_t>(size) * 4, 0});
  }
  std::mt19937 generator_;
};

/// The most bytes that buffers in the arena hold at once, without the gaps between them.
inline std::size_t most_held(const Plan& plan) {
  std::size_t most = 0;
  for (int step = 0; step < static_cast<int>(plan.steps.size()); ++step) {
    std::size_t sum = 0;
    for (const Plan::Buffer& buffer : plan.buffers)
      if (buffer.kind == "arena" && buffer.first <= step && step <= buffer.last) sum += buffer.bytes;
    most = std::max(most, sum);
  }
  return most;
}

/// The least time to compute all items in order in at most `bytes` for all that are held at once; earlier items may be
/// computed again whenever their inputs are there. The last item takes no memory. Infinite if that is impossible.
inline double least_seconds(const std::vector<RandomTape::Item>& items, std::size_t bytes) {
  using Set = std::uint32_t;
  const int count = static_cast<int>(items.size());
  std::vector<Set> useful(items.size() + 1, 0);  // by position: what may still be read
  for (int i = count - 1; i >= 0; --i) {
    const auto at = static_cast<std::size_t>(i);
    useful[at] = useful[at + 1];
    for (const int input : items[at].inputs) useful[at] |= Set{1} << input;
    for (int k = i - 1; k >= 0; --k)
      if (useful[at] >> k & 1)
        for (const int input : items[static_cast<std::size_t>(k)].inputs) useful[at] |= Set{1} << input;
  }
  const auto size_of_set = [&](Set set) {
    std::size_t sum = 0;
    for (int i = 0; i + 1 < count; ++i)
      if (set >> i & 1) sum += items[static_cast<std::size_t>(i)].bytes;
    return sum;
  };
  // How many items are computed and which of these are held, as one number: a bit above those of the computed items,
  // and the bits of the held ones.
  using State = Set;
  std::vector<double> best(std::size_t{2} << count, 1e300);  // by state: seconds of computing again
  std::priority_queue<std::pair<double, State>, std::vector<std::pair<double, State>>, std::greater<>> queue;
  const auto reach = [&](int position, Set held, double seconds) {
    const State state = Set{1} << position | (held & useful[static_cast<std::size_t>(position)]);
    if (best[state] <= seconds) return;
    best[state] = seconds;
    queue.emplace(seconds, state);
  };
  double all = 0;
  for (const RandomTape::Item& item : items) all += item.seconds;
  reach(0, 0, 0);
  while (!queue.empty()) {
    const auto [seconds, state] = queue.top();
    queue.pop();
    if (best[state] < seconds) continue;
    const int position = std::bit_width(state) - 1;
    const Set held = state ^ (Set{1} << position);
    if (position == count) return all + seconds;
    for (int i = 0; i < count; ++i)
      if (held >> i & 1) reach(position, held & ~(Set{1} << i), seconds);
    for (int i = 0; i <= position; ++i) {
      const RandomTape::Item& item = items[static_cast<std::size_t>(i)];
      const bool there = std::all_of(item.inputs.begin(), item.inputs.end(), [&](int k) { return held >> k & 1; });
      const Set after = held | Set{1} << i;
      if (!there || (held >> i & 1) || size_of_set(after) > bytes) continue;
      reach(i == position ? position + 1 : position, after, i == position ? seconds : seconds + item.seconds);
    }
  }
  return 1e300;
}
// Tapes to play ------------------------------------------------------------------------------------------------------

inline Array filled(const Shape& shape) {
  Array array(Dtype::float32, shape);
  for (std::int64_t i = 0; i < array.count(); ++i)
    array.as<float>()[i] = 0.003f * static_cast<float>(i * 37 % 401) - 0.6f;
  return array;
}

struct Work {
  Tape tape = Tape(Mode::train);
  Var x;
  Vars outputs;
  std::int64_t rows = 16;

  explicit Work(Vars (*record)(Work&), std::int64_t the_rows = 16) : rows(the_rows), given(filled({rows, 32, 48})) {
    outputs = record(*this);
  }
  std::vector<Feed> feeds() const { return {{x, given}}; }
  Var weight(const std::string& name, const Shape& shape) { return tape.parameter(name, filled(shape)); }
  Array given;
};

/// Residual layers with attention, dropout and views.
inline Vars network(Work& work) {
  work.x = work.tape.input("x", {work.rows, 32, 48});
  Vars weights;
  Var x = work.x;
  for (int layer = 0; layer < 4; ++layer) {
    const std::string at = std::to_string(layer);
    const auto weight = [&](const std::string& name, const Shape& shape) {
      weights.push_back(work.weight(name + at, shape));
      return weights[weights.size() - 1];
    };
    const Var qkv = einsum("btd,de->bte", x, weight("qkv", {48, 144}));
    const Vars parts = split(reshape(qkv, {work.rows, 32, 3, 48}), {1, 1, 1}, 2);
    const Var scores =
        softmax(einsum("bqd,bkd->bqk", reshape(parts[0], {work.rows, 32, 48}), reshape(parts[1], {work.rows, 32, 48})));
    const Var mixed = einsum("bqk,bkd->bqd", dropout(scores, 0.1), reshape(parts[2], {work.rows, 32, 48}));
    x = x + dropout(mixed, 0.2);
    const Var inner = gelu(einsum("btd,de->bte", x, weight("up", {48, 96})));
    x = x + einsum("bte,ed->btd", inner, weight("down", {96, 48}));
  }
  const Var loss = mean(square(x));
  Vars outputs = grad(loss, weights);
  outputs.push_back(loss);
  return outputs;
}

/// Recurrent layers.
inline Vars recurrent(Work& work) {
  work.x = work.tape.input("x", {16, 32, 48});
  const Var w = work.weight("w", {48, 48}), u = work.weight("u", {48, 48});
  Var x = work.x;
  for (int layer = 0; layer < 4; ++layer) {
    const ScanFunction cell = [&](const Vars& in, const Vars& h) {
      const Var gate = sigmoid(in[0] * 0.7 + matmul(h[0], u));
      const Var next = gate * h[0] + (1 - gate) * tanh(in[0]);
      return std::make_pair(Vars{next}, Vars{next});
    };
    x = x + gelu(scan(cell, {matmul(x, w)}, {zeros(work.tape, {16, 48})}).outputs[0]);
  }
  const Var loss = mean(square(x));
  const Vars gradients = grad(loss, {w, u});
  return {loss, gradients[0], gradients[1]};
}

/// Square arrays that are read transposed and in pieces, which must not be overwritten while they are read.
inline Vars transposed_network(Work& work) {
  work.x = work.tape.input("x", {16, 32, 48});
  const Var w = work.weight("w", {48, 48});
  Vars kept = {einsum("btd,bte->de", work.x, work.x) * 0.01};
  for (int i = 0; i < 6; ++i) {
    const Var x = kept[kept.size() - 1];
    kept.push_back(tanh(transpose(x, {1, 0}) * 1.5) + 0.1);
    const Vars halves = split(kept[kept.size() - 1], std::int64_t{2}, 0);
    kept.push_back(concat({cos(halves[1]), sin(halves[0])}, 0) + w);
  }
  Var y = kept[kept.size() - 1];
  for (std::size_t i = kept.size(); i-- > 0;) y = transpose(cumsum(y * kept[i], 1), {1, 0});
  const Var loss = mean(square(y));
  return {loss, grad(loss, {w})[0]};
}

inline bool same_bytes(const ArrayView& a, const ArrayView& b) {
  const Array first(a), second(b);
  return first.bytes() == second.bytes() && std::memcmp(first.data(), second.data(), first.bytes()) == 0;
}

inline double seconds_of(const Plan& plan) {
  double sum = 0;
  for (const Plan::Step& step : plan.steps) sum += step.seconds;
  return sum;
}

inline std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace xtape::test
