// Memory budgets: PlayerOptions::memory and memory_curve.
#include "budget_tapes.hpp"

using namespace xtape;
using namespace xtape::test;

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
  CHECK(message.find("budget_tapes.hpp") != std::string::npos);  // the line of the op
  options.memory = least;
  CHECK_NOTHROW(Player(work.tape, work.outputs, options));
  options.memory = 1;
  CHECK_THROWS_WITH_AS(Player(work.tape, work.outputs, options), doctest::Contains("but its memory limit is 1 byte: "),
                       Error);
}
