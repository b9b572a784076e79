#include "kernels/products/product.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "kernels/products/tile_tasks.hpp"
#include "matrices.hpp"
#include "random_layouts.hpp"

using namespace xtape;

namespace {
struct Case {
  std::string a, b, c;
  std::map<char, std::int64_t> sizes;

  Shape shape_of(const std::string& letters) const {
    Shape shape;
    for (char letter : letters) shape.push_back(sizes.at(letter));
    return shape;
  }
};

Shape pick(const std::string& letters, const std::string& from, const Shape& index) {
  Shape result;
  for (char letter : letters) result.push_back(index[from.find(letter)]);
  return result;
}

/// Runs the product on random layouts and compares it with plain loops. The numbers are small integers, so that every
/// order of summing gives the same result.
template <class T>
PlannedProduct check_product(const Case& test, std::mt19937& random, bool accumulate, LayoutFreedom freedom) {
  Product product;
  product.dtype = dtype_of<T>();
  product.a_axes = test.a;
  product.b_axes = test.b;
  product.c_axes = test.c;
  product.accumulate = accumulate;
  freedom.repeats = freedom.reorders;
  Scattered<T> a = scattered<T>(test.shape_of(test.a), random, freedom);
  Scattered<T> b = scattered<T>(test.shape_of(test.b), random, freedom);
  freedom.repeats = false;
  Scattered<T> c = scattered<T>(test.shape_of(test.c), random, freedom);
  product.a = a.layout;
  product.b = b.layout;
  product.c = c.layout;

  Scattered<T> expected = c;
  std::string all;
  for (const auto& [letter, size] : test.sizes) all += letter;
  if (!accumulate) for_each_index(c.layout.shape, [&](const Shape& index) { expected.at(index) = 0; });
  for_each_index(test.shape_of(all), [&](const Shape& index) {
    expected.at(pick(test.c, all, index)) += a.at(pick(test.a, all, index)) * b.at(pick(test.b, all, index));
  });

  CAPTURE(test.a + "," + test.b + "->" + test.c);
  CAPTURE(a.layout.shape);
  CAPTURE(a.layout.strides);
  CAPTURE(b.layout.shape);
  CAPTURE(b.layout.strides);
  CAPTURE(c.layout.strides);
  PlannedProduct planned;
  const std::vector<T> before = c.memory;
  for (int threads : {1, 2, 3}) {
    product.threads = threads;
    planned = make_product(product);
    Scratch scratch(planned.scratch_bytes);
    c.memory = before;
    planned.run(a.memory.data(), b.memory.data(), c.memory.data(), scratch.data());
    CHECK(c.memory == expected.memory);
  }
  return planned;
}

Case random_case(std::mt19937& random, std::int64_t largest) {
  Case test;
  char next = 'a';
  for (int role = 0; role < 4; ++role)
    for (std::size_t count = random() % 3; count > 0; --count, ++next) {
      const bool empty = random() % 40 == 0;
      test.sizes[next] = empty ? 0 : 1 + static_cast<std::int64_t>(random() % static_cast<unsigned>(largest));
      if (role != 0) test.a += next;  // 0: of b and c; 1: of a and c; 2: summed; 3: batch
      if (role != 1) test.b += next;
      if (role != 2) test.c += next;
    }
  for (std::string* letters : {&test.a, &test.b, &test.c}) std::shuffle(letters->begin(), letters->end(), random);
  return test;
}
}  // namespace

TEST_CASE("products of any axes under any layouts agree with plain loops") {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const Case test = random_case(random, 5);
    const bool accumulate = random() % 2 == 0;
    check_product<float>(test, random, accumulate, {});
    check_product<double>(test, random, accumulate, {});
    check_product<std::int32_t>(test, random, accumulate, {});
    check_product<std::int64_t>(test, random, accumulate, {});
  }
}

TEST_CASE("products large enough for tiles, under any layouts, agree with plain loops") {
  std::mt19937 random(2);
  int matrices = 0, packed = 0, loops = 0;
  for (int round = 0; round < 150; ++round) {
    Case test = random_case(random, 4);
    for (char letter : {'x', 'y', 'z'}) test.sizes[letter] = 4 + random() % 30;
    test.a += "xz";
    test.b += "zy";
    test.c += "xy";
    std::int64_t work = 1;
    for (const auto& [letter, size] : test.sizes) work *= size;
    if (work > 300'000 || test.sizes.size() > Shape::max_rank) continue;
    const PlannedProduct planned = check_product<float>(test, random, round % 2 == 0, {});
    (planned.way == ProductWay::loops ? loops : matrices) += 1;
    packed += planned.packed > 0;
    check_product<double>(test, random, round % 2 == 1, {});
  }
  CHECK(matrices > 10);  // every implementation has been used
  CHECK(packed > 3);
  CHECK(loops > 5);
}

TEST_CASE("long sums in plain loops: many results at once and one by one, in blocks of terms and in parts") {
  std::mt19937 random(9);
  const LayoutFreedom dense{false, false, false, false};
  for (const Case& test : {Case{"mk", "kn", "mn", {{'m', 3}, {'k', 700}, {'n', 300}}},  // many at once
                           Case{"kn", "kn", "n", {{'k', 515}, {'n', 1200}}},            // in two ranges
                           Case{"k", "kn", "n", {{'k', 260}, {'n', 40}}},
                           Case{"mk", "nk", "mn", {{'m', 3}, {'k', 9000}, {'n', 2}}},  // one by one
                           Case{"k", "k", "", {{'k', 140000}}},                        // in parts
                           Case{"jk", "kj", "", {{'j', 3}, {'k', 70000}}}}) {
    check_product<std::int64_t>(test, random, false, dense);
    check_product<std::int32_t>(test, random, true, dense);
    check_product<float>(test, random, false, dense);
    check_product<double>(test, random, true, {});
  }
}

TEST_CASE("the products of models run as matrix products without packing by copies") {
  std::mt19937 random(3);
  const LayoutFreedom dense{false, false, false, false};
  const std::map<char, std::int64_t> sizes{{'b', 2}, {'t', 48}, {'d', 80}, {'f', 88}};
  for (const auto& [a, b, c] : std::vector<std::array<std::string, 3>>{{"btd", "df", "btf"},
                                                                       {"btd", "fd", "btf"},
                                                                       {"btf", "df", "btd"},
                                                                       {"btd", "btf", "df"},
                                                                       {"btd", "btf", "fd"}}) {
    const std::string equation = a + "," + b + "->" + c;
    CAPTURE(equation);
    const PlannedProduct planned = check_product<float>({a, b, c, sizes}, random, false, dense);
    CHECK(planned.way == ProductWay::tiles);  // on every processor, also on one with a matrix unit
    CHECK(planned.packed == 0);
  }
  const std::map<char, std::int64_t> heads{{'b', 2}, {'q', 24}, {'k', 24}, {'h', 3}, {'e', 16}};
  for (const auto& [a, b, c] : std::vector<std::array<std::string, 3>>{
           {"bqhe", "bkhe", "bhqk"}, {"bhqk", "bkhe", "bqhe"}, {"bhqk", "bqhe", "bkhe"}, {"bqhe", "bkhe", "bhkq"}}) {
    const std::string equation = a + "," + b + "->" + c;
    CAPTURE(equation);
    const PlannedProduct planned = check_product<float>({a, b, c, heads}, random, true, dense);
    CHECK(planned.way != ProductWay::loops);
    CHECK(planned.packed == 0);
  }
}

TEST_CASE("products of few rows and a matrix are computed in place, for all sizes and layouts that suit") {
  std::mt19937 random(6);
  const auto size = [&](unsigned least, unsigned largest) {
    return static_cast<std::int64_t>(least + random() % (largest - least + 1));
  };
  const LayoutFreedom dense{false, false, false, false};
  for (int round = 0; round < 60; ++round) {
    const std::int64_t rows = 1 + round % 8;
    const std::map<char, std::int64_t> sizes{{'m', rows}, {'k', size(30, 90)}, {'n', size(40, 300)}, {'h', size(1, 3)}};
    // The matrix as [in, out] and as [out, in], as first or second operand, alone and in a batch.
    for (const auto& [a, b, c] : std::vector<std::array<std::string, 3>>{{"mk", "kn", "mn"},
                                                                         {"mk", "nk", "mn"},
                                                                         {"nk", "mk", "nm"},
                                                                         {"kn", "mk", "mn"},
                                                                         {"mhk", "nhk", "hmn"},
                                                                         {"hmk", "khn", "mhn"}}) {
      std::map<char, std::int64_t> used;
      for (const char letter : a + b) used[letter] = sizes.at(letter);
      const PlannedProduct planned = check_product<float>({a, b, c, used}, random, round % 2 == 0, dense);
      CHECK(planned.way == ProductWay::rows);
      CHECK(check_product<double>({a, b, c, used}, random, round % 2 == 1, dense).way == ProductWay::rows);
    }
  }
  CHECK(check_product<float>({"mk", "kn", "mn", {{'m', 9}, {'k', 40}, {'n', 40}}}, random, false, dense).way !=
        ProductWay::rows);
}

TEST_CASE("the bits of a row's product with a matrix do not depend on the other rows") {
  std::mt19937 random(8);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (const auto& [terms, columns] : {std::pair<std::int64_t, std::int64_t>{211, 5001}, {515, 641}}) {
    std::vector<float> x(8 * terms), w(terms * columns);
    for (float& each : x) each = uniform(random);
    for (float& each : w) each = uniform(random);
    for (const bool terms_run : {false, true}) {
      std::vector<float> all;
      for (const std::int64_t rows : {8, 5, 2, 1}) {
        Product product;
        product.a = Layout::dense({rows, terms});
        product.b = terms_run ? Layout::dense({columns, terms}) : Layout::dense({terms, columns});
        product.c = Layout::dense({rows, columns});
        product.a_axes = "mk";
        product.b_axes = terms_run ? "nk" : "kn";
        product.c_axes = "mn";
        product.threads = 1 + static_cast<int>(rows % 3);
        std::vector<float> c(static_cast<std::size_t>(rows * columns));
        const PlannedProduct planned = make_product(product);
        REQUIRE(planned.way == ProductWay::rows);
        Array scratch(Dtype::boolean, {static_cast<std::int64_t>(planned.scratch_bytes)});
        planned.run(x.data(), w.data(), c.data(), scratch.data());
        if (rows == 8) {
          all = c;
          product.a = Layout::dense({4, terms});
          product.c = Layout::dense({4, columns});
          std::vector<float> later(4 * columns);
          make_product(product).run(x.data() + 3 * terms, w.data(), later.data(), scratch.data());
          CHECK(std::equal(later.begin(), later.end(), all.begin() + 3 * columns));
        }
        CAPTURE(terms_run);
        CAPTURE(rows);
        const auto differing = std::mismatch(c.begin(), c.end(), all.begin()).first - c.begin();
        CHECK(differing == rows * columns);
      }
    }
  }
}

TEST_CASE("an axis label that appears twice in an operand selects its diagonal") {
  Product product;
  product.dtype = Dtype::float64;
  product.a = Layout::dense({3, 3, 2});
  product.b = Layout::dense({2, 4});
  product.c = Layout::dense({3, 4});
  product.a_axes = "iij";
  product.b_axes = "jk";
  product.c_axes = "ik";
  std::vector<double> a(18), b(8), c(12);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<double>(i);
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<double>(i * i);
  const PlannedProduct planned = make_product(product);
  Scratch scratch(planned.scratch_bytes);
  planned.run(a.data(), b.data(), c.data(), scratch.data());
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t k = 0; k < 4; ++k) {
      double sum = 0;
      for (std::size_t j = 0; j < 2; ++j) sum += a[i * 8 + j] * b[j * 4 + k];
      CHECK(c[i * 4 + k] == sum);
    }
}

TEST_CASE("tiles are divided so that many threads have equal work") {
  for (const int threads : {8, 16, 24, 64, 96})
    for (const std::int64_t bands : {19, 55, 147, 600})
      for (const std::int64_t panels : {12, 36, 48, 96, 1571}) {
        const TiledProducts tiles{
            .products = 1, .bands = bands, .panels = panels, .threads = threads, .most_panels = 8, .panel_cost = 1};
        const TileTasks tasks = tiles.best({bands, std::min<std::int64_t>(8, panels)});
        CAPTURE(threads);
        CAPTURE(bands);
        CAPTURE(panels);
        CAPTURE(tasks.bands);
        CAPTURE(tasks.panels);
        CHECK(tasks.panels <= 8);
        const auto ceiling = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
        const std::int64_t count = ceiling(bands, tasks.bands) * ceiling(panels, tasks.panels);
        const auto most =
            static_cast<double>(ceiling(count, threads) * tasks.bands * tasks.panels);  // tiles of a thread
        CHECK(most <= 1.3 * static_cast<double>(bands * panels) / threads);
      }
}

TEST_CASE("the usual division of tiles stays if its tasks are equal shares") {
  const TiledProducts tiles{
      .products = 1, .bands = 64, .panels = 32, .threads = 2, .most_panels = 32, .panel_cost = 0.25};
  const TileTasks tasks = tiles.best({8, 16});
  CHECK(tasks.bands == 8);
  CHECK(tasks.panels == 16);
}

TEST_CASE("float32 products are near float64, with the same bits on any number of threads") {
  std::mt19937 random(4);
  std::uniform_real_distribution<double> uniform(-1, 1);
  struct Size {
    std::int64_t m, k, n;
  };
  for (const Size& size :
       {Size{1, 3000, 700}, Size{64, 512, 300}, Size{1, 500000, 1}, Size{3, 2000, 5}, Size{300, 1, 200},
        Size{130, 70, 1}, Size{130, 300, 70}, Size{600, 512, 40}, Size{2000, 256, 96}}) {
    const auto count = [](std::int64_t x, std::int64_t y) { return static_cast<std::size_t>(x * y); };
    std::vector<double> a(count(size.m, size.k)), b(count(size.k, size.n)), c(count(size.m, size.n));
    for (double& each : a) each = static_cast<float>(uniform(random));
    for (double& each : b) each = static_cast<float>(uniform(random));
    const std::vector<float> a32(a.begin(), a.end()), b32(b.begin(), b.end());
    for (bool transposed : {false, true}) {
      Product product;
      product.a = Layout::dense({size.m, size.k});
      product.b = transposed ? Layout{{size.k, size.n}, {1, size.k}, 0} : Layout::dense({size.k, size.n});
      product.c = Layout::dense({size.m, size.n});
      product.a_axes = "mk";
      product.b_axes = "kn";
      product.c_axes = "mn";
      std::vector<float> first;
      for (int threads : {1, 2, 4, 16, 64}) {
        product.threads = threads;
        product.dtype = Dtype::float32;
        const PlannedProduct planned = make_product(product);
        Scratch scratch(planned.scratch_bytes);
        std::vector<float> c32(c.size());
        planned.run(a32.data(), b32.data(), c32.data(), scratch.data());
        if (threads == 1) first = c32;
        CHECK(std::memcmp(first.data(), c32.data(), c32.size() * sizeof(float)) == 0);
      }
      product.dtype = Dtype::float64;
      const PlannedProduct planned = make_product(product);
      Scratch scratch(planned.scratch_bytes);
      planned.run(a.data(), b.data(), c.data(), scratch.data());
      double worst = 0;
      for (std::size_t i = 0; i < c.size(); ++i)
        worst = std::max(worst, std::abs(c[i] - static_cast<double>(first[i])));
      CHECK(worst < 1e-6 * std::sqrt(static_cast<double>(size.k)) * 2);
    }
  }
}

TEST_CASE("there is no product of bool arrays") {
  Product product;
  product.dtype = Dtype::boolean;
  product.a = product.b = product.c = Layout::dense({2});
  product.a_axes = product.b_axes = product.c_axes = "i";
  CHECK_THROWS_WITH_AS(make_product(product), "there is no product of bool arrays: cast them to numbers", DtypeError);
}

TEST_CASE("products with sizes beyond 32 bits are planned in 64 bits") {
  constexpr auto two_to = [](int power) { return std::int64_t{1} << power; };
  const std::vector<std::int64_t> sizes{1, 3, 64, two_to(20), two_to(31), two_to(31) + 1, two_to(33), two_to(43)};
  int planned = 0;
  for (const std::int64_t i : sizes)
    for (const std::int64_t j : sizes)
      for (const std::int64_t k : sizes)
        for (const Dtype dtype : {Dtype::float32, Dtype::float64, Dtype::int64})
          for (const bool repeats : {false, true}) {
            Product product;
            product.dtype = dtype;
            const auto fits = [&](std::int64_t rows, std::int64_t columns) {
              return static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(size_of(dtype)) <
                     0x1p47;
            };
            if (!fits(i, j) || !fits(j, k) || !fits(i, k)) continue;
            product.a = Layout::dense({i, j});
            product.b = repeats ? Layout::dense({1, 1}).broadcast_to({j, k}) : Layout::dense({j, k});
            product.c = Layout::dense({i, k});
            product.a_axes = "ij";
            product.b_axes = "jk";
            product.c_axes = "ik";
            product.threads = 3;
            CAPTURE(i);
            CAPTURE(j);
            CAPTURE(k);
            const PlannedProduct plan = make_product(product);
            ++planned;
            CHECK(plan.scratch_bytes < std::size_t{1} << 60);
          }
  CHECK(planned > 100);
}
