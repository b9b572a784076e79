// Plans that need more memory than there is, and playing under a limit on address space.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "needs.hpp"
#include "player/plan/memory.hpp"
#include "processor_time.hpp"
#include "xtape/grad.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"
#include "xtape/ops/linear_algebra.hpp"
#include "xtape/player.hpp"
#include "xtape/scan.hpp"

using namespace xtape;

namespace {
constexpr std::int64_t two_to(int power) {
  return std::int64_t{1} << power;
}

/// The error message of planning.
std::string refusal(const Var& output, const PlayerOptions& options = {}) {
  try {
    const Player player(output.tape(), {output}, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was refused";
}

void check_says(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    INFO(text);
    INFO(part);
    CHECK(text.find(part) != std::string::npos);
  }
}

/// A one-dimensional float32 array of about this share of the machine's memory.
Shape share_of_memory(double share) {
  return {static_cast<std::int64_t>(static_cast<double>(memory_limit()) * share / 4)};
}
}  // namespace

TEST_CASE("arrays larger than the memory are refused while planning, naming the op and its source location") {
  Tape tape;
  const Var x = tape.input("x", {1});
  const auto in_scope = tape.in_scope(std::make_shared<const Scope>(Scope{"net.body", "net.json"}), 7);
  const Var large = broadcast_to(x, {two_to(45)});
  const std::string place = "at net.body (net.json, line 7)";
  check_says(refusal(tanh(large)), {"out of memory: tanh -> float32 (35184372088832,) " + place, "128.00 TiB"});
  check_says(refusal(sum(tanh(large))), {"tanh", place});
  check_says(refusal(sum(large)), {"out of memory: sum", place});
  check_says(refusal(large), {"out of memory: broadcast_to -> float32 (35184372088832,) " + place});
  check_says(refusal(grad(sum(exp(large)), {x})[0]), {"out of memory: exp", place});
  check_says(refusal(iota(tape, {two_to(45)})), {"out of memory: iota -> int64 (35184372088832,)", place});
  check_says(refusal(tape.input("huge", {two_to(45)}) * 2.0),
             {"out of memory: input 'huge' -> float32 (35184372088832,)"});
}

TEST_CASE("operands with more elements than can be addressed are refused before a kernel is made") {
  Tape tape;
  const Var x = tape.input("x", {1, 1});
  const Var large = broadcast_to(x, {two_to(30), two_to(29)});
  const std::vector<Var> outputs{
      einsum("ij,ij->", {large, large}),
      einsum("ij,ik->jk", {large, large}),
      matmul(slice(large, {0}, {2}), transpose(slice(large, {0}, {2}))),
      softmax(large, 0),
      sum(large, {0}),
      cumsum(large, 0),
      concat({large, large}, 0),
      layer_norm(large, reshape(slice(large, {0}, {1}), {-1}), reshape(slice(large, {0}, {1}), {-1})),
      take(large, tape.constant(0, Dtype::int64) + tape.input("i", {3}, Dtype::int64), 1)};
  for (const Var& output : outputs) {
    CAPTURE(output.node().op->name);
    const std::string text = refusal(output);
    // The product of two rows of 2^29 numbers takes long but may be planned.
    if (output.shape() == Shape{2, 2}) continue;
    check_says(text, {"out of memory: "});
  }
}

TEST_CASE("buffers that fit separately but not together are refused, naming the op of the largest") {
  Tape tape;
  const Var x = tape.input("x", {1});
  const Var small = tanh(broadcast_to(x, share_of_memory(0.4))), large = exp(broadcast_to(x, share_of_memory(0.7)));
  PlayerOptions options;
  options.passes.elementwise = false;
  check_says(refusal(sum(small) + sum(large), options), {"out of memory: the plan needs ", "this process can use ",
                                                         "its largest buffer, ", "is that of exp -> float32 ("});
  // Three arrays that would fit if they shared memory.
  const Var third = sum(exp(tanh(small)));
  options.passes.reuse = options.passes.in_place = false;
  check_says(refusal(third, options), {"out of memory: the plan needs "});
  const Player player(tape, {third});
  CHECK(player.plan().arena_bytes < memory_limit());
}

TEST_CASE("a scan's memory is checked like a plan's") {
  Tape tape;
  const Var x = tape.input("x", {3});
  const auto cell = [&](const Vars& slices, const Vars&) {
    const Var wide = tanh(broadcast_to(slices[0], share_of_memory(0.6)));
    return std::pair{Vars{sum(wide) + sum(wide * exp(wide))}, Vars{}};
  };
  PlayerOptions options;
  options.passes.elementwise = options.passes.in_place = false;
  check_says(refusal(scan(cell, {x}, {}, {0, false, {}}).outputs[0], options), {"out of memory: ", "float32 ("});
}

TEST_CASE("a view of a broadcast of 2^58 elements takes no memory, and ops on one are not folded") {
  const double start = processor_seconds();
  Tape tape;
  const Var three = tape.constant(3, Dtype::float32);
  const Var large = broadcast_to(three * 2.0, {two_to(29), two_to(29)});
  const Var corner = sum(slice(transpose(large), {two_to(28), -2}, {two_to(28) + 3, open_end}));
  Player player(tape, {corner});
  player.play();
  CHECK(player.scalar(corner) == 36);
  check_says(refusal(sum(large)), {"out of memory: sum"});
  check_says(refusal(tanh(broadcast_to(three, {two_to(40)}))), {"out of memory: tanh"});
  CHECK(processor_seconds() - start < 20);
}

TEST_CASE("arenas hold the reserved memory and no more") {
  Arena arena(5 << 20);
  arena.grow(3 << 20);
  arena.base()[(3 << 20) - 1] = std::byte{1};
  arena.grow(5 << 20);
  CHECK(arena.base()[(3 << 20) - 1] == std::byte{1});
  CHECK_THROWS_AS(arena.grow(std::size_t{1} << 30), Error);
  CHECK_THROWS_AS(arena.grow(std::numeric_limits<std::size_t>::max()), Error);
  CHECK_THROWS_AS(Arena().grow(std::numeric_limits<std::size_t>::max()), Error);
  CHECK(reinterpret_cast<std::uintptr_t>(arena.base()) % (2 << 20) == 0);
  CHECK(bytes_text(1000) == "1000 bytes");
  CHECK(bytes_text(3 << 19) == "1.50 MiB");
  CHECK(bytes_text(std::numeric_limits<std::size_t>::max()) == "16.00 EiB");
}

TEST_CASE("offsets of buffers larger than any memory saturate") {
  const std::size_t half = std::size_t{1} << 63;
  CHECK(assign_offsets({{half, 0, 1}, {half, 0, 1}}, true).total == std::numeric_limits<std::size_t>::max());
  CHECK(assign_offsets({{half, 0, 0}, {half, 1, 1}}, true).total == half);
}

namespace {
/// A program whose arena takes `mebibytes` MiB.
struct HugeTape {
  Tape tape;
  Var x = tape.input("x", {1}), y;
  explicit HugeTape(std::int64_t mebibytes) { y = sum(tanh(broadcast_to(x, {mebibytes << 18}))); }

  bool plays(const std::shared_ptr<Arena>& arena) const {
    PlayerOptions options;
    options.arena = arena;
    Player player(tape, {y}, options);
    player.play({{x, Array(Dtype::float32, {1})}});
    return player.scalar(y) == 0;
  }
};
}  // namespace

TEST_CASE("a process under a limit on address space" * doctest::skip()) {  // the next test case runs it
  struct rlimit limit {};
  REQUIRE(getrlimit(RLIMIT_AS, &limit) == 0);
  REQUIRE(limit.rlim_cur != RLIM_INFINITY);
  const auto arena = make_arena(), other = make_arena();
  CHECK(HugeTape(20).plays(arena));
  CHECK(HugeTape(40).plays(arena));
  CHECK(HugeTape(20).plays(other));
  CHECK(HugeTape(20).plays(nullptr));
  // Less than the limit, but more than is left or reserved.
  const HugeTape large(1400);
  const std::vector<std::string> said{"out of memory: ", "tanh -> float32 (367001600,)"};
  PlayerOptions options;
  check_says(refusal(large.y, options), said);
  options.arena = arena;
  check_says(refusal(large.y, options), said);
  check_says(refusal(tanh(broadcast_to(large.x, {1400 << 18}))), said);  // an output, which is not in the arena
  CHECK(HugeTape(40).plays(arena));
}

TEST_CASE("a process that may take little more memory" * doctest::skip()) {  // likewise
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  struct rlimit limit {};
  REQUIRE(getrlimit(RLIMIT_AS, &limit) == 0);
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) + (std::size_t{100} << 20);
  REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
  Tape tape;
  const Var x = tape.input("x", {64, 64}, Dtype::float64);
  const Var y = linalg::det(x);
  PlayerOptions options;
  options.threads = 2000;
  check_says(refusal(y, options), {"cannot start 2000 threads: the system gives ", " are left (ulimit -v: "});
  options.threads = 5000;
  check_says(refusal(y, options), {"the number of threads must be 0 to 4096, not 5000"});
  limit.rlim_cur = before;
  REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
  options.threads = 2;
  Player player(tape, {y}, options);
  player.play({{x, Array(Dtype::float64, {64, 64})}});
  CHECK(Array(player.view(y)).as<double>()[0] == 0);
}

TEST_CASE("too little memory for the threads is an error while planning" * needs_no_sanitizer() * needs_no_emulator() *
          needs_to_start_itself()) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const char* words = " --no-skip --test-case='a process that may take little more memory' >/dev/null";
  CHECK(std::system(("'" + program + "'" + words).c_str()) == 0);
}

TEST_CASE("under a limit on address space below the machine's memory, only plans that do not fit are refused" *
          needs_no_sanitizer() * needs_no_emulator() * needs_to_start_itself()) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const char* words = " --no-skip --test-case='a process under a limit on address space' >/dev/null";
  CHECK(std::system(("ulimit -v 2000000 && '" + program + "'" + words).c_str()) == 0);
}
