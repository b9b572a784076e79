#include "xtape/array.hpp"
#include "xtape/xtensor.hpp"

#include <doctest/doctest.h>

#include "threads.hpp"

using namespace xtape;

TEST_CASE("shapes broadcast as in NumPy") {
  CHECK(broadcast_shapes({{2, 3}, {3}}) == Shape{2, 3});
  CHECK(broadcast_shapes({{2, 1}, {1, 4}, {}}) == Shape{2, 4});
  CHECK(broadcast_shapes({{0, 3}, {1, 3}}) == Shape{0, 3});
  CHECK_THROWS_WITH_AS(broadcast_shapes({{2, 3}, {4}}),
                       "shapes (2, 3) and (4,) do not broadcast: counted from the back, sizes must be equal or 1",
                       ShapeError);
}

TEST_CASE("an array view sees an xtensor array through its strides") {
  xt::xarray<float> rows{{1, 2, 3}, {4, 5, 6}};
  CHECK(Array(rows).to<float>() == rows);
  xt::xarray<double, xt::layout_type::column_major> columns{{1, 2, 3}, {4, 5, 6}};
  const Array copy{ArrayView(columns)};
  CHECK(copy.as<double>()[1] == 2);
  CHECK(copy.shape() == Shape{2, 3});
  CHECK_THROWS_AS(copy.as<float>(), DtypeError);
}

TEST_CASE("a store keeps order and names the nearest name") {
  Store store;
  store.add("weight", Array(Dtype::float32, {2}));
  store.add("bias", Array(Dtype::float32, {1}));
  CHECK(store[1].name == "bias");
  CHECK_THROWS_WITH_AS(store.at("wieght"), "there is no array 'wieght'; did you mean 'weight'?", Error);
  CHECK_THROWS_AS(store.add("bias", Array(Dtype::float32, {1})), Error);
}

TEST_CASE("parallel_for covers every index once, whatever the number of threads") {
  for (int threads : {1, 2, 3})
    for (std::int64_t count : {0, 1, 7, 64, 1000}) {
      std::vector<int> hits(static_cast<std::size_t>(count), 0);
      parallel_for(threads, count, 16, [&](std::int64_t begin, std::int64_t finish) {
        for (std::int64_t i = begin; i < finish; ++i) ++hits[static_cast<std::size_t>(i)];
      });
      for (int hit : hits) CHECK(hit == 1);
    }
}
