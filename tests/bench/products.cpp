// The speed of float32 products: those of the benchmark's workloads, squares, and narrow ones; each as A·B, A·Bᵀ and
// Aᵀ·B, with row-major A and B. In the same run and in turn, independent multiply-adds in registers measure the peak.
// Prints GFLOP/s of the best of many short rounds, and the percentage of the peak.
//
// usage: products [--only NAME[,NAME]] [--threads N[,N]]
//        products [--only NAME[,NAME]] --as-if-threads N[,N], which predicts the efficiency of so many threads
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "base/threads/simulated_team.hpp"
#include "base/threads/threads.hpp"
#include "bench.hpp"
#include "dense_call.hpp"
#include "kernels/table/kernels.hpp"

namespace {

using namespace xtape;
using bench::seconds;

struct Size {
  const char* workload;
  std::int64_t m, n, k;  // c [m, n] sums over k terms
};

// Of the products of the workloads: forward, then the gradients of the input and of the weight where they differ in
// kind.
const std::vector<Size> sizes{
    {"gpt-char", 768, 384, 128},     {"gpt-char", 768, 512, 128},       {"gpt-char", 768, 128, 512},
    {"gpt-char", 128, 512, 768},     {"gpt-baby", 2048, 384, 384},      {"gpt-baby", 2048, 1536, 384},
    {"gpt-baby", 2048, 384, 1536},   {"gpt-baby", 384, 1536, 2048},     {"gpt2-124m", 256, 768, 768},
    {"gpt2-124m", 256, 3072, 768},   {"gpt2-124m", 256, 768, 3072},     {"gpt2-124m", 768, 3072, 256},
    {"gpt2-124m", 256, 50257, 768},  {"transformer", 2048, 128, 128},   {"transformer", 2048, 512, 128},
    {"transformer", 512, 8192, 128}, {"transformer", 128, 8192, 512},   {"gru-attention", 1536, 768, 256},
    {"gru-attention", 64, 768, 256}, {"lstm-attention", 64, 1024, 256}, {"lstm-attention", 64, 1024, 512},
    {"narrow", 64, 512, 512},        {"narrow", 64, 1024, 1024},        {"narrow", 64, 3072, 768},
    {"square", 256, 256, 256},       {"square", 384, 384, 384},         {"square", 512, 512, 512},
    {"square", 768, 768, 768},       {"square", 1024, 1024, 1024},      {"square", 2048, 2048, 2048},
};

/// Sums that do not depend on one another: twelve hide the latency of two multiply-adds a cycle.
constexpr std::int64_t independent = 12;

/// A register of `lanes` floats.
template <int lanes>
struct Register {
  typedef float type __attribute__((vector_size(lanes * sizeof(float))));  // NOLINT: `using` would drop the attribute
};

template <int lanes>
[[gnu::always_inline]] inline void multiply_add(std::int64_t rounds) {
  using Numbers = typename Register<lanes>::type;
  const Numbers factor = Numbers{} + 0.999f, term = Numbers{} + 0.001f;
  Numbers sums[independent];
  for (Numbers& sum : sums) sum = term;
  for (std::int64_t round = 0; round < rounds; ++round)
#pragma GCC unroll 12
    for (std::int64_t i = 0; i < independent; ++i) sums[i] = sums[i] * factor + term;
  volatile float kept = 0;
  for (const Numbers& sum : sums) kept = kept + sum[0];
}
#ifdef __x86_64__
[[gnu::target("avx512f")]] void multiply_add_avx512(std::int64_t rounds) {
  multiply_add<16>(rounds);
}
[[gnu::target("avx2,fma")]] void multiply_add_avx2(std::int64_t rounds) {
  multiply_add<8>(rounds);
}
#endif
void multiply_add_baseline(std::int64_t rounds) {
  multiply_add<4>(rounds);
}

struct Unit {
  void (*multiply_add)(std::int64_t rounds);
  std::int64_t lanes;
};
Unit unit() {
#ifdef __x86_64__
  if (instruction_set() >= InstructionSet::avx512) return {multiply_add_avx512, 16};
  if (instruction_set() >= InstructionSet::avx2) return {multiply_add_avx2, 8};
#endif
  return {multiply_add_baseline, 4};
}

/// Floating-point operations a second of the registers of `threads` threads that run at the same time: the sum of their
/// own speeds, so that a late start of one does not count.
double peak_once(int threads) {
  constexpr std::int64_t rounds = 20000;  // a quarter of a millisecond: other programs rarely disturb that
  const Unit used = unit();
  std::vector<double> speeds(static_cast<std::size_t>(threads));
  parallel_each(threads, threads, [&](std::int64_t i) {
    const double start = seconds();
    used.multiply_add(rounds);
    speeds[static_cast<std::size_t>(i)] =
        static_cast<double>(2 * independent * used.lanes * rounds) / (seconds() - start);
  });
  return std::accumulate(speeds.begin(), speeds.end(), 0.0);
}

struct Speed {
  double product = 0, peak = 0;  // operations a second
};

/// A team whose time follows from what one thread measures.
class Team : public SimulatedTeam {
 public:
  explicit Team(int threads) : SimulatedTeam({.threads = threads, .meeting = 6e-7, .each = 1e-7}) {}
  void touched(const void* /*address*/, std::size_t /*bytes*/, bool /*written*/) override {}
  void played(const Plan& /*plan*/, std::size_t /*step*/) override {}
  void worked(const char* /*what*/) override {
    WorkTimes times = take();
    if (!work_.add(times)) work_ = std::move(times);
    restart();
  }
  void forget() override { restart(); }
  /// Returns the seconds of a call of `work`.
  template <class Work>
  double time_of(const Work& work) {
    constexpr int rounds = 8;
    for (int i = 0; i <= rounds; ++i) {
      restart();
      work();
      if (i > 0) worked("");
    }
    return xtape::times_of(work_, meetings()).seconds;
  }

 private:
  WorkTimes work_ = {};
};

/// A product A·B, A·Bᵀ or Aᵀ·B.
class Multiplication {
 public:
  Multiplication(const Size& size, bool a_turned, bool b_turned, int threads) {
    const ValueType of_a{Dtype::float32, a_turned ? Shape{size.k, size.m} : Shape{size.m, size.k}};
    const ValueType of_b{Dtype::float32, b_turned ? Shape{size.n, size.k} : Shape{size.k, size.n}};
    const std::string equation = std::string(a_turned ? "km" : "mk") + "," + (b_turned ? "nk" : "kn") + "->mn";
    const DenseCall call({of_a, of_b}, {{Dtype::float32, {size.m, size.n}}}, {{"equation", equation}}, threads);
    kernel_ = kernels().make("einsum", call.form());
    scratch_ = Array(Dtype::boolean, {static_cast<std::int64_t>(kernel_.scratch_bytes)});
  }
  void run(const void* a, const void* b, void* c) {
    const void* const in[] = {a, b};
    void* const out[] = {c};
    kernel_.run({in, out, scratch_.data()});
  }

 private:
  Kernel kernel_;
  Array scratch_;
};

Speed measure(const Size& size, Multiplication& product, int threads, const void* a, const void* b, void* c) {
  const double work = 2 * static_cast<double>(size.m) * static_cast<double>(size.n) * static_cast<double>(size.k);
  constexpr double least_work = 3e7, least_seconds = 0.2;
  constexpr int least_rounds = 5;
  const int runs = std::max(1, static_cast<int>(least_work * threads / work));
  Speed best;
  double spent = 0;
  product.run(a, b, c);
  for (int round = 0; round < least_rounds || spent < least_seconds; ++round) {
    best.peak = std::max(best.peak, peak_once(threads));
    const double start = seconds();
    for (int i = 0; i < runs; ++i) product.run(a, b, c);
    const double time = seconds() - start;
    best.product = std::max(best.product, work * runs / time);
    spent += time;
  }
  return best;
}

void measure(const Size& size, int threads, bool as_if) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  const auto drawn = [&](std::int64_t count) {
    Array numbers(Dtype::float32, {count});
    for (std::int64_t i = 0; i < count; ++i) static_cast<float*>(numbers.data())[i] = uniform(random);
    return numbers;
  };
  Array a = drawn(size.m * size.k), b = drawn(size.k * size.n), c(Dtype::float32, {size.m * size.n});
  std::printf("%-14s %5lld %6lld %5lld %8d", size.workload, static_cast<long long>(size.m),
              static_cast<long long>(size.n), static_cast<long long>(size.k), threads);
  double peak = 0;
  std::array<double, 3> speeds{};
  for (const std::size_t order : {0u, 1u, 2u}) {
    const auto time = [&](int count) {
      Multiplication product(size, order == 2, order == 1, count);
      return Team(count).time_of([&] { product.run(a.data(), b.data(), c.data()); });
    };
    if (as_if) {
      std::printf(" %5.2f", time(1) / time(threads) / threads);
      continue;
    }
    Multiplication product(size, order == 2, order == 1, threads);
    const Speed speed = measure(size, product, threads, a.data(), b.data(), c.data());
    speeds[order] = speed.product;
    peak = std::max(peak, speed.peak);
  }
  if (!as_if) {
    std::printf(" %7.1f", peak * 1e-9);
    for (const double speed : speeds) std::printf(" %6.1f %3.0f%%", speed * 1e-9, 100 * speed / peak);
  }
  std::printf("\n");
  std::fflush(stdout);
}

std::vector<std::string> parts_of(const std::string& words) {
  std::vector<std::string> parts;
  std::istringstream stream(words);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

void run(int count, char** arguments) {
  std::vector<std::string> only, threads{"1", "2"};
  bool as_if = false;
  for (int i = 1; i < count; i += 2) {
    const std::string word = arguments[i];
    as_if |= word == "--as-if-threads";
    if (i + 1 == count || (word != "--only" && word != "--threads" && word != "--as-if-threads"))
      throw Error("the usage is at the top of tests/bench/products.cpp");
    (word == "--only" ? only : threads) = parts_of(arguments[i + 1]);
  }
  if (as_if)
    std::printf("%-14s %5s %6s %5s %8s %5s %5s %5s\n", "workload", "m", "n", "k", "threads", "A B", "A Bt", "At B");
  else
    std::printf("%-14s %5s %6s %5s %8s %7s %11s %11s %11s\n", "workload", "m", "n", "k", "threads", "peak", "A B",
                "A Bt", "At B");
  for (const std::string& number : threads)
    for (const Size& size : sizes)
      if (only.empty() || std::find(only.begin(), only.end(), size.workload) != only.end())
        measure(size, std::max(1, std::atoi(number.c_str())), as_if);
}

}  // namespace

int main(int count, char** arguments) {
  try {
    run(count, arguments);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "products: %s\n", error.what());
    return 1;
  }
}
