// Runs one product a number of times and nothing else, so that an emulator can count its instructions (counted.py).
//
// usage: counted M N K TIMES [DTYPE [EQUATION [PRECISION]]]
// DTYPE is that of the right operand, float32 by default; the other arrays are float64 if it is, and otherwise float32.
// EQUATION is mk,nk->mn by default.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "blocks.hpp"
#include "dense_call.hpp"
#include "kernels/table/kernels.hpp"
#include "xtape/error.hpp"
#include "xtape/half.hpp"

namespace {

using namespace xtape;

float number(std::int64_t i) {
  return static_cast<float>(i * 7919 % 2003 - 1000) / 1000;
}

Array numbers(Dtype dtype, const Shape& shape) {
  if (is_block(dtype)) return rounded_to_blocks(dtype, shape, number);
  Array array(dtype, shape);
  for (std::int64_t i = 0; i < array.count(); ++i)
    if (dtype == Dtype::float64)
      array.as<double>()[i] = number(i);
    else if (dtype == Dtype::bfloat16)
      static_cast<bfloat16*>(array.data())[i] = bfloat16(number(i));
    else if (dtype == Dtype::int8)
      static_cast<std::int8_t*>(array.data())[i] = static_cast<std::int8_t>(100 * number(i));
    else
      array.as<float>()[i] = number(i);
  return array;
}

void run(int count, char** words) {
  const auto word = [&](int i, const char* otherwise) { return std::string(i < count ? words[i] : otherwise); };
  if (count < 5) throw Error("the usage is at the top of tests/bench/counted.cpp");
  const std::int64_t m = std::atoi(words[1]), n = std::atoi(words[2]), k = std::atoi(words[3]);
  const Dtype dtype = dtype_named(word(5, "float32"));
  const std::string equation = word(6, "mk,nk->mn");
  const Shape right = equation == "mk,kn->mn" ? Shape{k, n} : Shape{n, k};
  const Dtype wide = dtype == Dtype::float64 ? dtype : Dtype::float32;
  const Array a = numbers(wide, {m, k}), b = numbers(dtype, right);
  Array c(wide, {m, n});
  const DenseCall call({{wide, {m, k}}, {dtype, right}}, {{wide, {m, n}}}, {{"equation", equation}}, 1,
                       precision_named(word(7, "float32")));
  const Kernel kernel = kernels().make("einsum", call.form());
  Array scratch(Dtype::int8, {static_cast<std::int64_t>(kernel.scratch_bytes)});
  const void* const in[] = {a.data(), b.data()};
  void* const out[] = {c.data()};
  for (int i = std::atoi(words[4]); i > 0; --i) kernel.run({in, out, scratch.data()});
}

}  // namespace

int main(int count, char** words) {
  try {
    run(count, words);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "counted: %s\n", error.what());
    return 1;
  }
}
