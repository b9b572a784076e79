// Products of rows by a matrix in blocks that lie across the sums, in 8-bit integers (Precision::int8_training): the
// same bits as a plain computation in their order.
#include "byte_matrices.hpp"

using namespace xtape;

namespace {
/// x [m, k] by the columns [first, first + n) of w [k, columns], for each of `batch` matrices.
struct AcrossProduct {
  std::int64_t m, k, n, first = 0, batch = 1;
  int threads = 1;
  bool weight_first = false;
  std::int64_t apart = 1;  ///< The distance of neighbours of x.
  Precision precision = Precision::int8_training;

  PlannedProduct planned(const BlockMatrix& w, bool accumulate) const {
    Product product;
    product.precision = precision;
    product.bits = Bits::same;
    product.threads = threads;
    const Layout x{{batch, m, k}, {m * k * apart, k * apart, apart}, 0};
    const Layout weight{{batch, k, n}, {k * w.terms, w.terms, 1}, first};
    product.a = weight_first ? weight : x;
    product.b = weight_first ? x : weight;
    product.c = weight_first ? Layout::dense({batch, n, m}) : Layout::dense({batch, m, n});
    product.a_axes = weight_first ? "bkn" : "bmk";
    product.b_axes = weight_first ? "bmk" : "bkn";
    product.c_axes = weight_first ? "bnm" : "bmn";
    product.narrow[weight_first ? 0 : 1] = w.dtype;
    product.accumulate = accumulate;
    return make_product(product);
  }

  /// The result [batch, m, n], added to `add` if that is given.
  std::vector<float> multiplied(const std::vector<float>& x, const BlockMatrix& w,
                                const std::vector<float>& add = {}) const {
    const PlannedProduct product = planned(w, !add.empty());
    std::vector<float> spread(x.size() * static_cast<std::size_t>(apart), 9);
    for (std::size_t i = 0; i < x.size(); ++i) spread[i * static_cast<std::size_t>(apart)] = x[i];
    std::vector<float> c(static_cast<std::size_t>(batch * m * n));
    const auto turned = [&](const std::vector<float>& from, bool back) {
      if (!weight_first) return from;
      std::vector<float> to(from.size());
      for (std::int64_t b = 0; b < batch; ++b)
        for (std::int64_t i = 0; i < m; ++i)
          for (std::int64_t j = 0; j < n; ++j) {
            const auto by_rows = static_cast<std::size_t>((b * m + i) * n + j),
                       by_columns = static_cast<std::size_t>((b * n + j) * m + i);
            to[back ? by_rows : by_columns] = from[back ? by_columns : by_rows];
          }
      return to;
    };
    if (!add.empty()) c = turned(add, false);
    Scratch scratch(product.scratch_bytes);
    const void* rows = spread.data();
    product.run(weight_first ? w.blocks.data() : rows, weight_first ? rows : w.blocks.data(), c.data(), scratch.data());
    return turned(c, true);
  }

  /// The same, computed plainly: 32 terms share a scale in both operands, and up to 1024 terms are added together.
  std::vector<float> expected(const std::vector<float>& x, const BlockMatrix& w,
                              const std::vector<float>& add = {}) const {
    constexpr std::int64_t together = 1024;
    const std::int64_t padded = (k + 31) / 32 * 32;
    const auto filled = [&](const auto& number) {
      std::vector<float> numbers(static_cast<std::size_t>(padded), 0.0F);
      for (std::int64_t i = 0; i < k; ++i) numbers[static_cast<std::size_t>(i)] = number(i);
      return ByteRounded(numbers);
    };
    std::vector<float> c(static_cast<std::size_t>(batch * m * n));
    for (std::int64_t b = 0; b < batch; ++b) {
      std::vector<ByteRounded> rows, columns;
      for (std::int64_t i = 0; i < m; ++i)
        rows.push_back(filled([&](std::int64_t t) { return x[static_cast<std::size_t>((b * m + i) * k + t)]; }));
      for (std::int64_t j = 0; j < n; ++j)
        columns.push_back(filled([&](std::int64_t t) { return w.value(b * k + t, first + j); }));
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < n; ++j) {
          const ByteRounded &row = rows[static_cast<std::size_t>(i)], &column = columns[static_cast<std::size_t>(j)];
          const auto at = static_cast<std::size_t>((b * m + i) * n + j);
          for (std::int64_t from = 0; from < k; from += together) {
            float sum = 0;
            for (std::int64_t t = from; t < std::min(padded, from + together); t += 32) {
              std::int32_t products = 0;
              for (auto l = static_cast<std::size_t>(t); l < static_cast<std::size_t>(t + 32); ++l)
                products += row.integers[l] * column.integers[l];
              const auto group = static_cast<std::size_t>(t / 32);
              sum = std::fma(static_cast<float>(products), row.scales[group] * column.scales[group], sum);
            }
            c[at] = from > 0 ? c[at] + sum : add.empty() ? sum : add[at] + sum;
          }
        }
    }
    return c;
  }
};

bool all_same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), same_bits);
}
}  // namespace

TEST_CASE(
    "products in 8 bits across blocks have the bits of a plain computation, for any rows, columns, terms, threads "
    "and places" *
    needs_bytes()) {
  std::mt19937 random(7);
  for (const Dtype dtype : byte_formats)
    for (const std::int64_t m : {9, 15, 16, 17, 31, 70})
      for (const std::int64_t k : {2, 31, 32, 33, 100, 288, 2048, 4133}) {
        if (k > 1000 && m != 9 && m != 17) continue;
        const std::int64_t block = block_of(dtype);
        AcrossProduct product{.m = m, .k = k, .n = m == 16 ? 2 * block : block};
        if (m == 15) product.n = block == 32 ? 160 : 256;
        if (m == 31) product.first = block;  // columns that begin with the second block
        product.threads = m % 2 == 0 ? 3 : 1;
        product.weight_first = m == 17 || m == 70;
        if (m == 17) product.apart = 3;
        const BlockMatrix w(dtype, k, product.first + product.n + (m == 70 ? block : 0), random);
        const auto x = drawn(m * k, random), add = drawn(m * product.n, random);
        CAPTURE(name_of(dtype));
        CAPTURE(m);
        CAPTURE(k);
        CHECK(product.planned(w, false).way == ProductWay::bytes);
        CHECK(all_same(product.multiplied(x, w), product.expected(x, w)));
        CHECK(all_same(product.multiplied(x, w, add), product.expected(x, w, add)));
      }
}

TEST_CASE("products in 8 bits across blocks: several products, and few columns of a block" * needs_bytes()) {
  std::mt19937 random(8);
  for (const Dtype dtype : byte_formats)
    for (const std::int64_t n : {5, 17, 32, 170}) {
      if (n > block_of(dtype)) continue;
      const AcrossProduct product{.m = 20, .k = 70, .n = n, .batch = 3, .threads = n == 170 ? 1 : 3};
      const BlockMatrix w(dtype, 3 * 70, block_of(dtype), random);
      const auto x = drawn(3 * 20 * 70, random);
      CAPTURE(name_of(dtype));
      CAPTURE(n);
      CHECK(product.planned(w, false).way == ProductWay::bytes);
      CHECK(all_same(product.multiplied(x, w), product.expected(x, w)));
    }
}

TEST_CASE("products in 8 bits across blocks: zeros, tiny numbers, NaN and infinities" * needs_bytes()) {
  std::mt19937 random(9);
  for (const Dtype dtype : byte_formats) {
    constexpr std::int64_t m = 19, k = 100;
    const AcrossProduct product{.m = m, .k = k, .n = block_of(dtype), .threads = 2};
    BlockMatrix w(dtype, k, product.n, random);
    std::memset(w.blocks.data(), 0, w.blocks.bytes() / 2);  // columns whose first 32 terms are 0
    std::vector<float> x = drawn(m * k, random);
    const auto row = [&](std::int64_t i) { return x.begin() + i * k; };
    std::fill_n(row(0), k, 2.5F);  // integers 127
    std::fill_n(row(1), k, 0.0F);
    std::fill_n(row(2), k, 0x1p-130F);  // rounded to 0
    row(3)[99] = std::numeric_limits<float>::quiet_NaN();
    row(4)[5] = -std::numeric_limits<float>::infinity();
    const auto c = product.multiplied(x, w);
    CAPTURE(name_of(dtype));
    CHECK(all_same(c, product.expected(x, w)));
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < product.n; ++j) {
        const float result = c[static_cast<std::size_t>(i * product.n + j)];
        if (i == 1 || i == 2) CHECK(result == 0);
        CHECK(std::isnan(result) == (i == 3 || i == 4));
      }
    // A weight that is not finite: NaN in the columns of its block.
    const std::uint16_t infinity = 0x7C00;
    std::memcpy(static_cast<std::byte*>(w.blocks.data()) + (dtype == Dtype::q6_k ? sizeof(block::Q6_K) - 2 : 0),
                &infinity, sizeof infinity);
    CHECK(all_same(product.multiplied(x, w), product.expected(x, w)));
  }
}

TEST_CASE("products of at most 8 rows, and those of int8, are exact across blocks" * needs_bytes()) {
  std::mt19937 random(10);
  for (const Dtype dtype : byte_formats)
    for (const std::int64_t m : {1, 8, 40}) {
      AcrossProduct product{.m = m, .k = 64, .n = 256};
      if (m > 8) product.precision = Precision::int8;
      const BlockMatrix w(dtype, 64, 256, random);
      const auto x = drawn(m * 64, random), c = product.multiplied(x, w);
      CHECK(product.planned(w, false).way != ProductWay::bytes);
      product.precision = Precision::float32;
      CHECK(all_same(c, product.multiplied(x, w)));
    }
}

TEST_CASE("products in 8 bits across blocks are near those of float32" * needs_bytes()) {
  std::mt19937 random(11);
  for (const Dtype dtype : byte_formats) {
    AcrossProduct product{.m = 20, .k = 1024, .n = 256};
    const BlockMatrix w(dtype, 1024, 256, random);
    const auto x = drawn(20 * 1024, random), c = product.multiplied(x, w);
    product.precision = Precision::float32;
    const auto exact = product.multiplied(x, w);
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < c.size(); ++i) {
      difference += (double{c[i]} - exact[i]) * (double{c[i]} - exact[i]);
      size += double{exact[i]} * exact[i];
    }
    const double error = std::sqrt(difference / size);
    CAPTURE(error);
    CHECK(error < 0.014);   // both operands have the error of one rounded operand
    CHECK(error > 0.0015);  // it does round
  }
}
