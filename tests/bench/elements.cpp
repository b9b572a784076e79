// The time of the kernels that work element by element or row by row, on one thread and float32 arrays that fit the
// second-level cache. Prints nanoseconds an element, of the best of many short rounds.
//
// usage: elements [--only NAME[,NAME]]
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "bench.hpp"
#include "kernels.hpp"

namespace {

using namespace xtape;
using bench::seconds;

constexpr std::int64_t rows = 32, length = 768, count = rows * length;

/// Whether `name` is one of the words of `only`, or there are none.
bool wanted(const std::string& only, const std::string& name) {
  return only.empty() || ("," + only + ",").find("," + name + ",") != std::string::npos;
}

void measure(const std::string& only, const std::string& name, const std::function<void()>& run) {
  if (!wanted(only, name)) return;
  constexpr int rounds = 500, together = 4;
  double best = 1;
  for (int round = 0; round < rounds; ++round) {
    const double start = seconds();
    for (int i = 0; i < together; ++i) run();
    best = std::min(best, (seconds() - start) / together);
  }
  std::printf("%-20s %.3f\n", name.c_str(), best * 1e9 / count);
  std::fflush(stdout);
}

void measure_all(const std::string& only) {
  const Kernels& all = kernels();
  const FloatKernels<float>& of = all.of<float>();
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> x(count), dy(count), y(count), dx(count);
  for (float& number : x) number = normal(random);
  for (float& number : dy) number = normal(random);

  for (const char* op :
       {"add", "exp", "tanh", "sigmoid", "erf", "log", "gelu_tanh", "gelu_erf", "gelu_grad_tanh", "gelu_grad_erf"}) {
    const ElementLoop loop = all.make_element_loop({op, Dtype::float32});
    const void* in[] = {x.data(), dy.data()};
    measure(only, op, [&] { loop(in, y.data(), count); });
  }
  for (const std::int64_t size : {32, 64, 256, 768}) {
    const Middle extent{count / size, size, 1};
    measure(only, "softmax_" + std::to_string(size), [&] { of.softmax(x.data(), y.data(), extent, nullptr, 1); });
    measure(only, "softmax_grad_" + std::to_string(size),
            [&] { of.softmax_grad(y.data(), dy.data(), dx.data(), 1, extent, nullptr, 1); });
  }
  std::vector<float> weight(length, 1), bias(length), mean(rows), rstd(rows), dweight(length), dbias(length);
  std::vector<char> scratch(all.norm_grad_scratch(rows, length, sizeof(float)));
  of.layer_norm(x.data(), weight.data(), bias.data(), 1e-5, y.data(), mean.data(), rstd.data(), 0, rows, length);
  measure(only, "layer_norm", [&] {
    of.layer_norm(x.data(), weight.data(), bias.data(), 1e-5, y.data(), mean.data(), rstd.data(), 0, rows, length);
  });
  measure(only, "layer_norm_grad", [&] {
    of.norm_grad(dy.data(), x.data(), mean.data(), rstd.data(), weight.data(), dx.data(), dweight.data(), dbias.data(),
                 scratch.data(), rows, length, 1);
  });
  CrossEntropy loss;
  loss.rows = rows;
  loss.classes = length;
  const std::vector<std::int32_t> targets(rows, 5);
  std::vector<double> losses(rows);
  std::vector<float> logsumexp(rows);
  const auto& losses_of = all.losses_of<float, std::int32_t>();
  losses_of.row_losses(x.data(), targets.data(), loss, losses.data(), logsumexp.data(), 1);
  measure(only, "cross_entropy",
          [&] { losses_of.row_losses(x.data(), targets.data(), loss, losses.data(), logsumexp.data(), 1); });
  measure(only, "cross_entropy_grad",
          [&] { losses_of.cross_entropy_grad(x.data(), targets.data(), logsumexp.data(), 1.0f, loss, dx.data(), 1); });
  measure(only, "dropout", [&] { of.drop({1, 2}, 0, count, 0.9, 1 / 0.9f, x.data(), y.data()); });
}

}  // namespace

int main(int count_of_words, char** words) {
  const bool only = count_of_words == 3 && std::string(words[1]) == "--only";
  if (count_of_words != 1 && !only) {
    std::fprintf(stderr, "usage: elements [--only NAME[,NAME]]\n");
    return 1;
  }
  measure_all(only ? words[2] : "");
  return 0;
}
