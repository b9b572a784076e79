// The time of the kernels that work element by element or row by row, on one thread and arrays that fit the
// second-level cache. Prints nanoseconds an element, of the best of many short rounds. Rows of float64 end in _f64. The
// last rows play small programs: broadcasts, chains of ops, and ops on few elements, with all that a play costs.
//
// usage: elements [--only NAME[,NAME]]
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "bench.hpp"
#include "dense_call.hpp"
#include "kernels/table/kernels.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"

namespace {

using namespace xtape;
using bench::seconds;

constexpr std::int64_t rows = 32, length = 768, count = rows * length;
constexpr Dtype f32 = Dtype::float32, f64 = Dtype::float64, i32 = Dtype::int32;

/// Whether `name` is one of the words of `only`, or there are none.
bool wanted(const std::string& only, const std::string& name) {
  return only.empty() || ("," + only + ",").find("," + name + ",") != std::string::npos;
}

std::string suffix(Dtype dtype) {
  return dtype == f64 ? "_f64" : "";
}

/// An array of random floats, or of integers below `below`.
Array made(const ValueType& type, std::mt19937& random, int below) {
  Array array(type.dtype, type.shape);
  std::normal_distribution<float> normal;
  for (std::int64_t i = 0; i < array.count(); ++i)
    if (type.dtype == f32)
      array.as<float>()[i] = normal(random);
    else if (type.dtype == f64)
      array.as<double>()[i] = normal(random);
    else
      array.as<std::int32_t>()[i] = static_cast<std::int32_t>(random() % static_cast<unsigned>(below));
  return array;
}

/// Prints the time of `run`, per element.
void print_time(const std::string& name, std::int64_t elements, const std::function<void()>& run) {
  const auto few = static_cast<int>(std::clamp<std::int64_t>(count / elements, 1, 1000));
  const int rounds = elements > count ? 100 : 500, together = 4 * few;
  double best = 1;
  for (int round = 0; round < rounds; ++round) {
    const double start = seconds();
    for (int i = 0; i < together; ++i) run();
    best = std::min(best, (seconds() - start) / together);
  }
  std::printf("%-24s %.3f\n", name.c_str(), best * 1e9 / static_cast<double>(elements));
  std::fflush(stdout);
}

/// The magnitudes of an array of floats.
void make_positive(Array& array) {
  for (std::int64_t i = 0; i < array.count(); ++i)
    if (array.dtype() == f32)
      array.as<float>()[i] = std::abs(array.as<float>()[i]);
    else
      array.as<double>()[i] = std::abs(array.as<double>()[i]);
}

/// Measures the kernel or the tile function of one call, per element of its largest operand.
void measure(const std::string& only, const std::string& name, const std::string& op,
             const std::vector<ValueType>& inputs, const Attributes& attributes = {}, int below = 6) {
  if (!wanted(only, name)) return;
  std::mt19937 random(1);
  Tape tape;
  std::vector<Operand> operands;
  std::vector<Array> arrays;
  for (const ValueType& type : inputs) {
    operands.emplace_back(tape.input(std::to_string(arrays.size()), type.shape, type.dtype));
    arrays.push_back(made(type, random, below));
    if (op.rfind("log", 0) == 0 || (op == "pow" && arrays.size() == 1)) make_positive(arrays.back());
  }
  const Op& called = builtin_ops().at(op);
  const Node& node = apply(tape, called, operands, attributes)[0].node();
  for (const ValueType& type : node.outputs) arrays.emplace_back(type.dtype, type.shape);
  std::vector<const void*> in;
  std::vector<void*> out;
  std::int64_t elements = 1;
  for (Array& array : arrays) {
    elements = std::max(elements, array.count());
    if (in.size() < inputs.size())
      in.push_back(array.data());
    else
      out.push_back(array.data());
  }
  const DenseCall call(inputs, {node.outputs.begin(), node.outputs.end()}, node.attributes);
  if (called.lowering.tile) {
    const TileFunction tile = kernels().make_tile(op, call.form());
    print_time(name, elements, [&] { tile({in.data(), out.data(), 0, elements, 0}); });
  } else {
    const Kernel kernel = kernels().make(op, call.form());
    Array scratch(Dtype::int8, Shape{static_cast<std::int64_t>(kernel.scratch_bytes)});
    print_time(name, elements, [&] { kernel.run({in.data(), out.data(), scratch.data()}); });
  }
}

/// Measures a play of a program over parameters of these types, per element of the first.
void measure_play(const std::string& only, const std::string& name, const std::vector<ValueType>& types,
                  const std::function<Var(const Vars&)>& program) {
  if (!wanted(only, name)) return;
  std::mt19937 random(1);
  Tape tape;
  Vars x;
  for (const ValueType& type : types) x.push_back(tape.parameter(std::to_string(x.size()), made(type, random, 2)));
  PlayerOptions options;
  options.threads = 1;
  Player player(tape, {program(x)}, options);
  print_time(name, std::max<std::int64_t>(1, count_of(types[0].shape)), [&] { player.play(); });
}

void measure_functions(const std::string& only, Dtype dtype) {
  const ValueType x{dtype, {rows, length}};
  measure(only, "add" + suffix(dtype), "add", {x, x});
  for (const char* op : {"exp", "expm1", "log", "log1p", "tanh", "sigmoid", "softplus", "erf", "sin", "cos"})
    measure(only, op + suffix(dtype), op, {x});
  measure(only, "pow" + suffix(dtype), "pow", {x, x});
  for (const char* approximate : {"tanh", "none"}) {
    const Attributes attributes{{"approximate", std::string(approximate)}};
    const std::string kind = (std::string(approximate) == "none" ? "erf" : approximate) + suffix(dtype);
    measure(only, "gelu_" + kind, "gelu", {x}, attributes);
    measure(only, "gelu_grad_" + kind, "gelu_grad", {x, x}, attributes);
  }
}

void measure_rows(const std::string& only) {
  const ValueType x{f32, {rows, length}}, row{f32, {length}}, column{f32, {rows}}, scalar{f32, {}};
  for (const std::int64_t size : {32, 64, 256, 768, 50000}) {
    const ValueType cut{f32, {std::max<std::int64_t>(1, count / size), size}};
    const std::string name = std::to_string(size);
    measure(only, "softmax_" + name, "softmax", {cut});
    measure(only, "softmax_grad_" + name, "softmax_grad", {cut, cut});
    const ValueType each{i32, {cut.shape[0]}}, sums{f32, {cut.shape[0]}};
    measure(only, "cross_entropy_" + name, "cross_entropy", {cut, each});
    measure(only, "cross_entropy_grad_" + name, "cross_entropy_grad", {cut, each, sums, scalar});
  }
  measure(only, "layer_norm", "layer_norm", {x, row, row});
  measure(only, "layer_norm_grad", "layer_norm_grad", {x, x, column, column, row}, {{"bias", true}});
  measure(only, "dropout", "dropout", {x}, {{"rate", 0.1}});
}

/// Short axes: reductions, and picking elements.
void measure_short(const std::string& only, Dtype dtype) {
  for (const std::int64_t size : {2, 3, 4, 5, 8, 12, 16}) {
    const ValueType last{dtype, {count / size, size}};
    const std::string name = std::to_string(size) + suffix(dtype);
    measure(only, "sum_last_" + name, "sum", {last}, {{"axis", std::vector<std::int64_t>{1}}});
    measure(only, "sum_above_" + name, "sum", {last}, {{"axis", std::vector<std::int64_t>{0}}});
  }
  const ValueType x{dtype, {count / 3, 3}};
  measure(only, "max_last_3" + suffix(dtype), "max", {x}, {{"axis", std::vector<std::int64_t>{1}}});
  measure(only, "take_rows_3" + suffix(dtype), "take", {x, {i32, {count / 3}}}, {{"axis", std::int64_t{0}}}, count / 3);
  measure(only, "take_last_3" + suffix(dtype), "take", {x, {i32, {3}}}, {{"axis", std::int64_t{1}}}, 3);
  measure(only, "gather_last_3" + suffix(dtype), "gather", {x, {i32, {count / 3, 3}}}, {{"axis", std::int64_t{1}}}, 3);
  measure(only, "take_long" + suffix(dtype), "take", {{dtype, {1, count}}, {i32, {count}}}, {{"axis", std::int64_t{1}}},
          count);
}

/// Products that plain loops compute.
void measure_products(const std::string& only, Dtype dtype) {
  const auto product = [&](const std::string& name, const std::string& equation, const Shape& a, const Shape& b) {
    measure(only, name + suffix(dtype), "einsum", {{dtype, a}, {dtype, b}}, {{"equation", equation}});
  };
  product("dot", "i,i->", {count}, {count});
  product("dots_32", "ij,ij->i", {768, 32}, {768, 32});
  product("columns_32", "ij,ij->j", {768, 32}, {768, 32});
  product("outer_32", "bi,bj->bij", {24, 32}, {24, 32});
  product("batch_3", "bij,bjk->bik", {2730, 3, 3}, {2730, 3, 3});
  product("batch_8", "bij,bjk->bik", {384, 8, 8}, {384, 8, 8});
  product("vectors_4", "bij,bj->bi", {1536, 4, 4}, {1536, 4});
  product("across_4", "bij,bj->bi", {1536, 16, 4}, {1536, 4});
  product("strided", "kij,kj->ik", {96, 16, 16}, {96, 16});
}

Var runge_kutta(const Vars& v) {
  return v[0] + (v[1] + 2 * v[2] + 2 * v[3] + v[0] * v[1]) * 0.1;
}
Var cell(const Vars& v) {
  return sigmoid(v[0]) * v[1] + sigmoid(v[2]) * tanh(v[3]);
}

void measure_plays(const std::string& only, Dtype dtype) {
  const std::string end = suffix(dtype);
  for (const std::int64_t size : {2, 3, 4, 16}) {
    const std::int64_t n = count / size;
    const std::string name = std::to_string(size) + end;
    const ValueType x{dtype, {n, size}}, column{dtype, {n, 1}}, row{dtype, {size}};
    measure_play(only, "by_column_" + name, {x, column}, [](const Vars& v) { return v[0] * v[1]; });
    measure_play(only, "by_row_" + name, {x, row}, [](const Vars& v) { return v[0] * v[1]; });
    measure_play(only, "sliced_" + name, {x, {dtype, {n, size + 1}}}, [=](const Vars& v) {
      return v[0] * slice(v[1], {0, 0}, {n, size});
    });
    measure_play(only, "outer_" + name, {{dtype, {n / 16, 16, size}}, {dtype, {n / 16, 1, size}}},
                 [](const Vars& v) { return v[0] * v[1]; });
  }
  for (const std::int64_t size : {1, 14, 100, 1000, 24576}) {
    const ValueType x{dtype, {size}};
    const std::string name = std::to_string(size) + end;
    measure_play(only, "chain_" + name, {x, x, x, x}, runge_kutta);
    measure_play(only, "cell_" + name, {x, x, x, x}, cell);
    measure_play(only, "add_" + name, {x, x}, [](const Vars& v) { return v[0] + v[1]; });
  }
  const ValueType numbers{dtype, {14}};
  measure_play(only, "picked" + end, {{dtype, {}}, numbers, numbers},
               [](const Vars& v) { return v[1].at(3) * v[2].at(5) + v[1].at(7) * v[2].at(1) - v[0]; });
}

}  // namespace

int main(int count_of_words, char** words) {
  const bool some = count_of_words == 3 && std::string(words[1]) == "--only";
  if (count_of_words != 1 && !some) {
    std::fprintf(stderr, "usage: elements [--only NAME[,NAME]]\n");
    return 1;
  }
  const std::string only = some ? words[2] : "";
  for (const Dtype dtype : {f32, f64}) measure_functions(only, dtype);
  measure_rows(only);
  for (const Dtype dtype : {f32, f64}) measure_short(only, dtype);
  for (const Dtype dtype : {f32, f64}) measure_products(only, dtype);
  for (const Dtype dtype : {f32, f64}) measure_plays(only, dtype);
  return 0;
}
