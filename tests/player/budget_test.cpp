// Memory budgets: PlayerOptions::memory and memory_curve.
#include "player/plan/budget.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <queue>
#include <random>
#include <string>

#include "allocations.hpp"
#include "player/plan/memory.hpp"
#include "xtape/grad.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"
#include "xtape/scan.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
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
std::size_t most_held(const Plan& plan) {
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
double least_seconds(const std::vector<RandomTape::Item>& items, std::size_t bytes) {
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

Array filled(const Shape& shape) {
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
Vars network(Work& work) {
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
Vars recurrent(Work& work) {
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
Vars transposed_network(Work& work) {
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

bool same_bytes(const ArrayView& a, const ArrayView& b) {
  const Array first(a), second(b);
  return first.bytes() == second.bytes() && std::memcmp(first.data(), second.data(), first.bytes()) == 0;
}

double seconds_of(const Plan& plan) {
  double sum = 0;
  for (const Plan::Step& step : plan.steps) sum += step.seconds;
  return sum;
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}
}  // namespace

TEST_CASE("budgets: near the best of all plans of tapes of 20 nodes") {
  for (unsigned seed = 0; seed < 10; ++seed) {
    CAPTURE(seed);
    RandomTape random(seed);
    PlayerOptions options;
    options.threads = 1;
    const Player all(random.tape, {random.output()}, options);
    random.time(all.plan());
    const std::vector<MemoryPoint> curve = memory_curve(random.tape, {random.output()}, options);
    REQUIRE(curve.size() > 3);
    for (std::size_t i = curve.size() - 1; i > 0; i -= std::min<std::size_t>(i, 3)) {
      CAPTURE(curve[i].bytes);
      options.memory = curve[i].bytes;
      const Player within(random.tape, {random.output()}, options);
      CHECK(seconds_of(within.plan()) == doctest::Approx(curve[i].seconds));
      CHECK(curve[i].seconds <= 1.1 * least_seconds(random.items, most_held(within.plan())));
      CHECK(static_cast<double>(curve[i].arena_bytes) <= 1.15 * static_cast<double>(most_held(within.plan())));
    }
  }
}

TEST_CASE("budgets: the memory of a plan stays below every budget, and bits and draws stay") {
  for (const bool fused : {true, false})
    for (const Work& work : {Work(network), Work(recurrent), Work(transposed_network)}) {
      PlayerOptions options;
      options.threads = 1;
      options.seed = 5;
      options.passes.elementwise = options.passes.fuse = fused;
      Player all(work.tape, work.outputs, options);
      all.play(work.feeds(), 3);
      const std::vector<MemoryPoint> curve = memory_curve(work.tape, work.outputs, options);
      CHECK(curve.front().again == 0);
      CHECK(curve.front().bytes <= all.plan().peak_bytes());
      CHECK(curve.back().arena_bytes < 0.6 * static_cast<double>(curve.front().arena_bytes));
      double slowest = 0;
      for (int i = 0; i < 10; ++i) {
        options.memory =
            curve.front().bytes - (curve.front().bytes - curve.back().bytes) * static_cast<std::size_t>(i) / 9;
        CAPTURE(options.memory);
        Player within(work.tape, work.outputs, options);
        CHECK(within.plan().peak_bytes() <= options.memory);
        CHECK(seconds_of(within.plan()) >= slowest);
        slowest = seconds_of(within.plan());
        within.play(work.feeds(), 3);
        for (const Var& output : work.outputs) CHECK(same_bytes(all.view(output), within.view(output)));
      }
      CHECK(slowest > seconds_of(all.plan()));
    }
}

TEST_CASE("budgets: a curve falls in memory and grows in time") {
  const Work work(network);
  const std::vector<MemoryPoint> curve = memory_curve(work.tape, work.outputs);
  for (std::size_t i = 1; i < curve.size(); ++i) {
    CHECK(curve[i].bytes < curve[i - 1].bytes);
    CHECK(curve[i].seconds >= curve[i - 1].seconds);
  }
}

TEST_CASE("budgets: the arena holds what the plan says and plays allocate nothing") {
  const Work work(network);
  PlayerOptions options;
  options.threads = 1;
  options.memory = memory_curve(work.tape, work.outputs, options).back().bytes;
  Player player(work.tape, work.outputs, options);
  std::size_t end = 0;
  for (const Plan::Buffer& buffer : player.plan().buffers) {
    if (buffer.kind != "arena") continue;
    end = std::max(end, buffer.offset + buffer.bytes);
    for (const Plan::Buffer& other : player.plan().buffers)
      if (&other != &buffer && other.kind == "arena" && other.first <= buffer.last && buffer.first <= other.last)
        CHECK((other.offset + other.bytes <= buffer.offset || buffer.offset + buffer.bytes <= other.offset));
  }
  CHECK(end <= player.plan().arena_bytes);
  const std::vector<Feed> feeds = work.feeds();
  player.play(feeds);
  const AllocationCount allocations;
  player.play(feeds);
  CHECK(allocations.count() == 0);
}

TEST_CASE("budgets: states are written once") {
  Tape tape;
  const Var state = tape.input("state", {64, 64});
  const Var x = tape.input("x", {64, 64});
  const Var next = state + x;
  Var y = next;
  Vars kept;
  for (int i = 0; i < 6; ++i) kept.push_back(y = tanh(y * 1.5));
  for (int i = 5; i >= 0; --i) y = cumsum(y * kept[static_cast<std::size_t>(i)], 1);
  PlayerOptions options;
  options.threads = 1;
  options.carries = {{state, next}};
  options.passes.elementwise = false;
  const auto play = [&](std::size_t memory) {
    options.memory = memory;
    Player player(tape, {y}, options);
    const Array one(xt::xarray<float>(xt::ones<float>({64, 64})));
    for (int i = 0; i < 3; ++i) player.play({{x, one}});
    return std::make_pair(Array(player.view(y)), Array(player.carried(state)));
  };
  const auto expected = play(0);
  const auto found = play(memory_curve(tape, {y}, options).back().bytes);
  CHECK(same_bytes(expected.first, found.first));
  CHECK(same_bytes(expected.second, found.second));
}

TEST_CASE("budgets: what was found for one shape serves others, and bits stay") {
  PlayerOptions options;
  options.threads = 1;
  options.arena = make_arena();
  const Work first(network);
  const std::vector<MemoryPoint> curve = memory_curve(first.tape, first.outputs, options);
  options.memory = (curve.front().bytes + curve.back().bytes) / 2;
  for (const std::int64_t rows : {16, 17, 13, 15, 14}) {
    CAPTURE(rows);
    const Work work(network, rows);
    PlayerOptions free = options;
    free.arena = nullptr;
    free.memory = 0;
    Player all(work.tape, work.outputs, free), within(work.tape, work.outputs, options);
    CHECK(all.plan().peak_bytes() > options.memory);
    CHECK(within.plan().peak_bytes() <= options.memory);
    all.play(work.feeds(), 3);
    within.play(work.feeds(), 3);
    for (const Var& output : work.outputs) CHECK(same_bytes(all.view(output), within.view(output)));
  }
  CHECK(options.arena->known_ways().searches <= 2);  // the second shape is larger than the first
}

TEST_CASE("budgets: a limit that all values fit in changes nothing") {
  const Work work(network);
  PlayerOptions options;
  options.threads = 1;
  const Player all(work.tape, work.outputs, options);
  options.memory = all.plan().peak_bytes();
  const Player within(work.tape, work.outputs, options);
  CHECK(within.plan().steps.size() == all.plan().steps.size());
  CHECK(within.plan().peak_bytes() == all.plan().peak_bytes());
}

TEST_CASE("budgets: a plan without an arena cannot be smaller") {
  Tape tape;
  const Var y = reshape(tape.input("x", {64, 64}), {4096});
  PlayerOptions options;
  CHECK(memory_curve(tape, {y}).size() == 1);
  options.memory = 64;
  CHECK_THROWS_WITH_AS(Player(tape, {y}, options), doctest::Contains("the plan needs at least 32.00 KiB"), Error);
}

TEST_CASE("an arena that is released takes memory again when it is used") {
  constexpr std::size_t bytes = (std::size_t{5} << 20) + 123;
  Arena arena;
  arena.grow(bytes);
  CHECK(arena.resident() == 0);
  std::fill_n(arena.base(), bytes, std::byte{1});
  CHECK(arena.resident() >= bytes);
  CHECK(arena.resident() < bytes + 4096);  // no huge page for the remainder
  arena.release();
  CHECK(arena.resident() == 0);
  arena.base()[5] = std::byte{1};
  CHECK(arena.resident() > 0);
}

TEST_CASE("budgets: a plan that cannot be so small") {
  const Work work(network);
  const std::size_t least = memory_curve(work.tape, work.outputs).back().bytes;
  PlayerOptions options;
  options.memory = least - 1;
  const std::string message = error_of([&] { Player(work.tape, work.outputs, options); });
  CHECK(message.find("at least " + bytes_text(least) + " (" + std::to_string(least) + " bytes)") != std::string::npos);
  CHECK(message.find("budget_test.cpp") != std::string::npos);  // the line of the op
  options.memory = least;
  CHECK_NOTHROW(Player(work.tape, work.outputs, options));
  options.memory = 1;
  CHECK_THROWS_WITH_AS(Player(work.tape, work.outputs, options), doctest::Contains("but its memory limit is 1 byte: "),
                       Error);
}
