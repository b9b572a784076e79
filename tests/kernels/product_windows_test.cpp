// Products with sliding windows, as in convolutions and their gradients.
#include <doctest/doctest.h>

#include <vector>

#include "base/system/instruction_set.hpp"
#include "kernels/products/product.hpp"
#include "matrices.hpp"

using namespace xtape;

TEST_CASE("tiles gather sliding windows without a copy") {
  struct Windows {
    std::int64_t images, channels, step;
  };
  // Columns of a register that lie next to each other, or not; one block of terms, or two; each product a task, or not.
  for (const Windows& each : {Windows{1, 5, 1}, {1, 5, 2}, {2, 100, 1}, {17, 5, 1}, {17, 5, 2}}) {
    const std::int64_t images = each.images, channels = each.channels, step = each.step;
    CAPTURE(images);
    CAPTURE(channels);
    CAPTURE(step);
    constexpr std::int64_t outputs = 8, size = 3, count = 40;
    const std::int64_t length = (count - 1) * step + size;
    Product product;
    product.dtype = Dtype::float32;
    product.a_axes = "ocx";
    product.b_axes = "ncXx";
    product.c_axes = "noX";
    product.threads = 2;
    product.a = Layout::dense({outputs, channels, size});
    product.b = {{images, channels, count, size}, {channels * length, length, step, 1}, 0};
    product.c = Layout::dense({images, outputs, count});
    std::vector<float> a(static_cast<std::size_t>(outputs * channels * size)),
        b(static_cast<std::size_t>(images * channels * length)), c(static_cast<std::size_t>(images * outputs * count)),
        expected(c.size());
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 7) - 3;
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 11) - 5;
    for_each_index({images, outputs, channels, count, size}, [&](const Shape& at) {
      expected[(at[0] * outputs + at[1]) * count + at[3]] +=
          a[(at[1] * channels + at[2]) * size + at[4]] * b[(at[0] * channels + at[2]) * length + at[3] * step + at[4]];
    });
    const PlannedProduct planned = make_product(product);
    Scratch scratch(planned.scratch_bytes);
    planned.run(a.data(), b.data(), c.data(), scratch.data());
    CHECK(c == expected);
    CHECK(planned.way == ProductWay::tiles);
    CHECK(planned.packed == 0);
  }
}

TEST_CASE("images: products with sliding windows, and with the terms of their gradients in short and long runs") {
  struct Images {
    std::int64_t outputs, width, step;
    bool gradient;
    ProductWay way;
  };
  constexpr std::int64_t images = 13, channels = 6, size = 3, height = 10;
  // Registers of lines, halves of them, or neither; the same for terms; and sums in registers of terms.
  for (const Images& each : {Images{12, 16, 1, false, ProductWay::tiles},
                             {12, 8, 1, false, ProductWay::tiles},
                             {12, 4, 2, false, ProductWay::tiles},
                             {12, 8, 2, false, ProductWay::tiles},
                             {40, 16, 1, true, ProductWay::tiles},
                             {40, 8, 1, true, ProductWay::tiles},
                             {40, 4, 1, true, ProductWay::tiles},
                             {40, 8, 2, true, ProductWay::tiles},
                             {40, 5, 1, true, ProductWay::tiles},
                             {10, 16, 1, true, ProductWay::dots},
                             {16, 32, 1, true, ProductWay::dots}}) {
    const std::int64_t outputs = each.outputs, width = each.width, step = each.step;
    const bool gradient = each.gradient;
    CAPTURE(outputs);
    CAPTURE(width);
    CAPTURE(step);
    CAPTURE(gradient);
    const std::int64_t down = (height - 1) * step + size, across = (width - 1) * step + size;
    const Layout weight = Layout::dense({outputs, channels, size, size}),
                 result = Layout::dense({images, outputs, height, width}),
                 windows{{images, channels, height, width, size, size},
                         {channels * down * across, down * across, step * across, step, across, 1},
                         0};
    Product product;
    product.dtype = Dtype::float32;
    product.threads = 2;
    product.a_axes = gradient ? "noYX" : "ocyx";
    product.a = gradient ? result : weight;
    product.b_axes = "ncYXyx";
    product.b = windows;
    product.c_axes = gradient ? "ocyx" : "noYX";
    product.c = gradient ? weight : result;
    std::vector<float> a(static_cast<std::size_t>(count_of(product.a.shape))),
        b(static_cast<std::size_t>(images * channels * down * across)),
        c(static_cast<std::size_t>(count_of(product.c.shape))), expected(c.size());
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 7) - 3;
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 11) - 5;
    for_each_index({images, outputs, channels, height, width, size, size}, [&](const Shape& at) {
      const std::int64_t of_weight = ((at[1] * channels + at[2]) * size + at[5]) * size + at[6],
                         of_result = ((at[0] * outputs + at[1]) * height + at[3]) * width + at[4],
                         of_image =
                             ((at[0] * channels + at[2]) * down + at[3] * step + at[5]) * across + at[4] * step + at[6];
      expected[gradient ? of_weight : of_result] += a[gradient ? of_result : of_weight] * b[of_image];
    });
    const PlannedProduct planned = make_product(product);
    Scratch scratch(planned.scratch_bytes);
    planned.run(a.data(), b.data(), c.data(), scratch.data());
    CHECK(c == expected);
    if (instruction_set() == InstructionSet::baseline && each.way == ProductWay::dots) continue;  // in tiles
    CHECK(planned.way == each.way);
    CHECK(planned.packed == 0);
  }
}
