// The time of the kernels that work element by element or row by row, on one thread and float32 arrays that fit the
// second-level cache. Prints nanoseconds an element, of the best of many short rounds.
//
// usage: elements [--only NAME[,NAME]]
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "bench.hpp"
#include "dense_call.hpp"
#include "kernels.hpp"
#include "xtape/op/op.hpp"

namespace {

using namespace xtape;
using bench::seconds;

constexpr std::int64_t rows = 32, length = 768, count = rows * length;

/// Whether `name` is one of the words of `only`, or there are none.
bool wanted(const std::string& only, const std::string& name) {
  return only.empty() || ("," + only + ",").find("," + name + ",") != std::string::npos;
}

/// An array of random floats, or of the number 5.
Array made(const ValueType& type, std::mt19937& random) {
  Array array(type.dtype, type.shape);
  std::normal_distribution<float> normal;
  for (std::int64_t i = 0; i < array.count(); ++i)
    if (type.dtype == Dtype::float32)
      array.as<float>()[i] = normal(random);
    else
      array.as<std::int32_t>()[i] = 5;
  return array;
}

/// Measures the kernel or the tile function of one call.
void measure(const std::string& only, const std::string& name, const std::string& op,
             const std::vector<ValueType>& inputs, const Attributes& attributes = {}) {
  if (!wanted(only, name)) return;
  std::mt19937 random(1);
  Tape tape;
  std::vector<Operand> operands;
  std::vector<Array> arrays;
  for (const ValueType& type : inputs) {
    operands.emplace_back(tape.input(std::to_string(arrays.size()), type.shape, type.dtype));
    arrays.push_back(made(type, random));
  }
  const Op& called = builtin_ops().at(op);
  const Node& node = apply(tape, called, operands, attributes)[0].node();
  for (const ValueType& type : node.outputs) arrays.emplace_back(type.dtype, type.shape);
  std::vector<const void*> in;
  std::vector<void*> out;
  for (Array& array : arrays)
    if (in.size() < inputs.size())
      in.push_back(array.data());
    else
      out.push_back(array.data());

  const DenseCall call(inputs, {node.outputs.begin(), node.outputs.end()}, node.attributes);
  std::function<void()> run;
  if (called.lowering.tile) {
    run = [&, tile = kernels().make_tile(op, call.form())] { tile({in.data(), out.data(), 0, count, 0}); };
  } else {
    const Kernel kernel = kernels().make(op, call.form());
    const auto scratch = std::make_shared<Array>(Dtype::int8, Shape{static_cast<std::int64_t>(kernel.scratch_bytes)});
    run = [&, kernel, scratch] { kernel.run({in.data(), out.data(), scratch->data()}); };
  }
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
  const ValueType x{Dtype::float32, {rows, length}}, row{Dtype::float32, {length}}, column{Dtype::float32, {rows}},
      scalar{Dtype::float32, {}}, targets{Dtype::int32, {rows}};
  measure(only, "add", "add", {x, x});
  for (const char* op : {"exp", "tanh", "sigmoid", "erf", "log"}) measure(only, op, op, {x});
  for (const char* approximate : {"tanh", "none"}) {
    const Attributes attributes{{"approximate", std::string(approximate)}};
    const std::string kind = std::string(approximate) == "none" ? "erf" : approximate;
    measure(only, "gelu_" + kind, "gelu", {x}, attributes);
    measure(only, "gelu_grad_" + kind, "gelu_grad", {x, x}, attributes);
  }
  for (const std::int64_t size : {32, 64, 256, 768}) {
    const ValueType cut{Dtype::float32, {count / size, size}};
    measure(only, "softmax_" + std::to_string(size), "softmax", {cut});
    measure(only, "softmax_grad_" + std::to_string(size), "softmax_grad", {cut, cut});
  }
  measure(only, "layer_norm", "layer_norm", {x, row, row});
  measure(only, "layer_norm_grad", "layer_norm_grad", {x, x, column, column, row}, {{"bias", true}});
  measure(only, "cross_entropy", "cross_entropy", {x, targets});
  measure(only, "cross_entropy_grad", "cross_entropy_grad", {x, targets, column, scalar});
  measure(only, "dropout", "dropout", {x}, {{"rate", 0.1}});
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
