// The processor time per node of recording, planning and the first play: on tapes of many small ops, and of planning on
// the training steps of workloads.
//
// usage: planning [--parts] [NODES|WORKLOAD…]   (default: 1000, 10000, 100000 and 1000000 nodes)
//
// --parts gives the times and allocations of the passes and of the planner instead, the least of seven times.
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "player/plan/plan.hpp"
#include "player/program/passes.hpp"
#include "player/run/body_kernels.hpp"
#include "training_step.hpp"
#include "xtape/player.hpp"

using namespace xtape;

namespace {
std::atomic<std::int64_t> allocations{0};
}  // namespace

void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}

namespace {
/// The processor time of this thread: that of others does not count.
double seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

/// Layers of a residual network, with products, elementwise ops, reductions and views, and the gradient by its weight.
Vars recorded(Tape& tape, std::size_t nodes) {
  Array values(Dtype::float32, {4, 4});
  std::fill_n(values.as<float>(), values.count(), 0.1f);
  const Var w = tape.parameter("w", values);
  Var x = tape.parameter("x", Array(values));
  while (tape.size() * 4 < nodes) {
    const Var y = transpose(tanh(einsum("ij,jk->ik", x, w) + 0.5));
    x = x + y * sigmoid(x) - mean(y, {1}, true);
  }
  const Var loss = sum(x);
  return {loss, grad(loss, {w})[0]};
}

void measure(std::size_t nodes) {
  const double before = peak_bytes(), start = seconds();
  Tape tape;
  const Vars outputs = recorded(tape, nodes);
  const double after = seconds(), held = peak_bytes();
  PlayerOptions options;
  options.threads = 1;
  Player player(tape, outputs, options);
  const double planned = seconds(), peak = peak_bytes();
  player.play();
  const double played = seconds();
  const double count = static_cast<double>(tape.size());
  std::printf(
      "%8zu nodes: recording %.2f us and %.2f KiB a node, planning %.2f us and %.2f KiB, first play %.2f us; %zu "
      "steps\n",
      tape.size(), (after - start) / count * 1e6, (held - before) / count / 1024, (planned - after) / count * 1e6,
      (peak - held) / count / 1024, (played - planned) / count * 1e6, player.plan().steps.size());
  std::fflush(stdout);
}

/// Prints the least of five times: a plan is made again for other sizes of a batch.
void measure(const bench::Workload& workload) {
  const bench::TrainingStep step(workload);
  double least = 1e300;
  std::size_t steps = 0;
  for (int i = 0; i < 5; ++i) {
    const double start = seconds();
    const Player player(step.tape, step.outputs);
    least = std::min(least, seconds() - start);
    steps = player.plan().steps.size();
  }
  std::printf("%s, %zu nodes: planning %.1f ms, %.2f us a node; %zu steps\n", workload.name.c_str(), step.tape.size(),
              least * 1e3, least / static_cast<double>(step.tape.size()) * 1e6, steps);
  std::fflush(stdout);
}

/// The parts of planning, with their least times.
class Parts {
 public:
  /// Notes the time since the last call as that of the next part.
  void note(const char* name) {
    const double spent = seconds() - begin_;
    if (next_ == parts_.size()) parts_.push_back({name, spent, 0});
    parts_[next_].seconds = std::min(parts_[next_].seconds, spent);
    parts_[next_++].allocations = allocations - allocated_;
    go_on();
  }
  void begin() {
    next_ = 0;
    go_on();
  }
  void print(double nodes) const {
    for (const Part& part : parts_)
      std::printf("  %-12s %6.3f us and %5.2f allocations a node\n", part.name, part.seconds / nodes * 1e6,
                  static_cast<double>(part.allocations) / nodes);
  }

 private:
  struct Part {
    const char* name;
    double seconds;
    std::int64_t allocations;
  };
  void go_on() {
    allocated_ = allocations;
    begin_ = seconds();
  }

  std::vector<Part> parts_;
  std::size_t next_ = 0;
  std::int64_t allocated_ = 0;
  double begin_ = 0;
};

void measure_parts(const Tape& tape, const Vars& outputs) {
  PlayerOptions options;
  options.threads = 1;
  Parts parts;
  for (int i = 0; i < 7; ++i) {
    parts.begin();
    {
      Program program = extract(tape, outputs, {});
      parts.note("extract");
      expand_pass(program, Expand::without_kernel);
      early_pass(program);
      parts.note("expand");
      fuse_pass(program);
      parts.note("fuse");
      scan_pass(program);
      fold_pass(program);
      parts.note("fold");
      common_pass(program);
      parts.note("common");
      accumulate_pass(program);
      parts.note("accumulate");
      elementwise_pass(program);
      parts.note("elementwise");
      program.compact();
      parts.note("compact");
      const PlannedProgram planned = plan(std::move(program), options, 1, body_kernels());
      parts.note("plan");
    }
    parts.note("destroy");
  }
  std::printf("%zu nodes\n", tape.size());
  parts.print(static_cast<double>(tape.size()));
}

bool is_number(const std::string& word) {
  return std::isdigit(static_cast<unsigned char>(word[0])) != 0;
}
}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  const bool by_part = !words.empty() && words[0] == "--parts";
  if (by_part) words.erase(words.begin());
  if (words.empty()) words = {"1000", "10000", "100000", "1000000"};
  {  // what the first plan of a process makes is not that of a node: rules, tables, pages of code
    Tape tape;
    const Player player(tape, recorded(tape, 100));
  }
  for (const std::string& word : words) {
    if (!by_part && is_number(word)) {
      measure(std::strtoull(word.c_str(), nullptr, 10));
    } else if (!by_part) {
      measure(bench::workload_named(word));
    } else if (is_number(word)) {
      Tape tape;
      const Vars outputs = recorded(tape, std::strtoull(word.c_str(), nullptr, 10));
      measure_parts(tape, outputs);
    } else {
      const bench::TrainingStep step(bench::workload_named(word));
      measure_parts(step.tape, step.outputs);
    }
  }
}
