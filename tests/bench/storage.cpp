// The time of products of few rows by a matrix in every dtype in which weights are stored, beside the time of reading
// as many bytes in the same round. A product reads the matrix once, so 1.00 is the limit. With "across", the sums lie
// across the blocks of the matrix, as those of gradients do.
//
// usage: storage [THREADS [PRECISION [across]]]
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/threads/threads.hpp"
#include "bench.hpp"
#include "blocks.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"

namespace {

using namespace xtape;
using bench::seconds;

constexpr std::int64_t columns = 8192, terms = 4096;

float number(std::int64_t i) {
  return static_cast<float>(i * 7919 % 2003) / 1000 - 1;
}

/// A product of `rows` rows by a matrix, stored as `dtype`.
struct StoredProduct {
  Dtype dtype;
  Array stored;
  std::optional<Player> player;
  double best = 1e9, reading = 1e9;

  StoredProduct(Dtype as, std::int64_t rows, int threads, Precision precision, bool across) : dtype(as) {
    Tape tape;
    Array x(Dtype::float32, {rows, across ? columns : terms});
    for (std::int64_t i = 0; i < x.count(); ++i) x.as<float>()[i] = number(3 * i);
    const Shape shape{columns, terms};
    if (is_block(dtype)) {
      stored = rounded_to_blocks(dtype, shape, number);
    } else {
      Array floats(Dtype::float32, shape);
      for (std::int64_t i = 0; i < floats.count(); ++i) floats.as<float>()[i] = 100 * number(i);
      stored = evaluate(cast(tape.constant(floats), dtype));
    }
    const Var w = tape.parameter("w", stored), given = tape.parameter("x", x);
    PlayerOptions options;
    options.threads = threads;
    options.precision = precision;
    options.passes.fold = false;
    Array scales(Dtype::float32, {columns, 1});
    std::fill_n(scales.as<float>(), columns, 0.01F);
    const Var scale = tape.parameter("scale", scales);
    const Var wide = dtype == Dtype::int8 ? dequantize(w, scale) : cast(w, Dtype::float32);
    player.emplace(tape, Vars{einsum(across ? "bo,oi->bi" : "bi,oi->bo", {given, wide})}, options);
  }
};

/// Reads the bytes of an array once.
double read_seconds(const Array& array, int threads) {
  static volatile std::uint64_t kept = 0;
  const auto* words = static_cast<const std::uint64_t*>(array.data());
  const auto count = static_cast<std::int64_t>(array.bytes() / sizeof(std::uint64_t));
  const double start = seconds();
  parallel_for(threads, count, 1 << 15, [&](std::int64_t begin, std::int64_t finish) {
    std::uint64_t sums[16] = {};
    for (std::int64_t i = begin; i + 16 <= finish; i += 16)
      for (int k = 0; k < 16; ++k) sums[k] += words[i + k];
    for (const std::uint64_t sum : sums) kept = kept + sum;
  });
  return seconds() - start;
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : thread_count();
  const Precision precision = argc > 2 ? precision_named(argv[2]) : Precision::float32;
  const bool across = argc > 3;
  constexpr Dtype dtypes[] = {Dtype::float32, Dtype::bfloat16, Dtype::int8, Dtype::q8_0,
                              Dtype::q6_k,    Dtype::q5_k,     Dtype::q4_k, Dtype::q4_0};
  for (const std::int64_t rows : {1, 4, 8, 64, 512}) {
    std::vector<std::unique_ptr<StoredProduct>> products;
    for (const Dtype dtype : dtypes)
      products.push_back(std::make_unique<StoredProduct>(dtype, rows, threads, precision, across));
    for (int round = 0; round < 15; ++round)
      for (auto& each : products) {
        each->reading = std::min(each->reading, read_seconds(each->stored, threads));
        const double start = seconds();
        each->player->play();
        each->best = std::min(each->best, seconds() - start);
      }
    std::printf("%s%lld rows, %d threads\n%-9s %9s %8s %10s %8s\n", rows == 1 ? "" : "\n", static_cast<long long>(rows),
                threads, "", "ms", "GB/s", "/ reading", "/ int8");
    for (const auto& each : products)
      std::printf("%-9s %9.3f %8.1f %10.2f %8.2f\n", name_of(each->dtype), 1e3 * each->best,
                  static_cast<double>(each->stored.bytes()) / each->best / 1e9, each->best / each->reading,
                  each->best / products[2]->best);
  }
}
