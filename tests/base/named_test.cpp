// Values by name, and lists whose copies share their elements.
#include "xtape/named.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "xtape/array.hpp"
#include "xtape/shared_list.hpp"
#include "xtape/tape.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

using Sizes = NamedSizes;

TEST_CASE("values are found by name and listed in the order of adding") {
  Sizes sizes{{"width", 8}, {"batch", 2}};
  sizes.add("heads", 4);
  CHECK(sizes.names() == std::vector<std::string>{"width", "batch", "heads"});
  CHECK(sizes[1].name == "batch");
  CHECK(sizes[1].value == 2);
  CHECK(sizes.at("heads") == 4);
  CHECK(*sizes.find("width") == 8);
  CHECK(sizes.find("height") == nullptr);
  CHECK(sizes.has("batch"));
  CHECK(!sizes.has(""));
  std::int64_t total = 0;
  for (const auto& [name, size] : sizes) total += size;
  CHECK(total == 14);
  CHECK_THROWS_WITH_AS(sizes.at("widht"), "there is no size 'widht'; did you mean 'width'?", Error);
  CHECK_THROWS_AS(Sizes().at("width"), Error);
}

TEST_CASE("a name can be added once and set again any number of times") {
  Sizes sizes{{"a", 1}};
  CHECK_THROWS_WITH_AS(sizes.add("a", 2), "size 'a' already exists", Error);
  CHECK(sizes == Sizes{{"a", 1}});
  sizes.set("a", 3);
  sizes.set("b", 4);
  CHECK(sizes == Sizes{{"a", 3}, {"b", 4}});
  CHECK_THROWS_AS((Sizes{{"a", 1}, {"a", 1}}), Error);
}

TEST_CASE("equal names with equal values are equal in any order") {
  const Sizes sizes{{"a", 1}, {"b", 2}, {"c", 3}};
  CHECK(sizes == Sizes{{"c", 3}, {"a", 1}, {"b", 2}});
  CHECK(sizes != Sizes{{"a", 1}, {"b", 2}});
  CHECK(sizes != Sizes{{"a", 1}, {"b", 2}, {"c", 4}});
  CHECK(sizes != Sizes{{"a", 1}, {"b", 2}, {"d", 3}});
  CHECK(Sizes() == Sizes{});
}

TEST_CASE("thousands of names are found again") {
  Sizes sizes;
  for (std::int64_t i = 0; i < 5000; ++i) sizes.add(std::to_string(i * 7919 % 5000), i);
  for (std::int64_t i = 0; i < 5000; ++i) CHECK(sizes.at(std::to_string(i * 7919 % 5000)) == i);
}

TEST_CASE("arrays are passed as views, and looked up as handles that outlive the container") {
  Store store;
  store.add("x", Array(xt::xarray<float>{1, 2}));
  const Named<ArrayView> views = store;
  CHECK(views.at("x").data() == store.at("x").data());
  Array kept =
      [] {
        Store gone;
        gone.add("y", Array(xt::xarray<float>{3, 4}));
        return gone;
      }()
          .at("y");
  CHECK(kept.as<float>()[1] == 4);
  store.at("x").as<float>()[0] = 5;
  CHECK(store.at("x").as<float>()[0] == 5);
}

TEST_CASE("copies of a list share its elements until one of them is changed") {
  SharedList<int> first{1, 2, 3};
  const SharedList<int> second = first;
  CHECK(&first[0] == &second[0]);
  first.own()[0] = 9;
  CHECK(first.get() == std::vector<int>{9, 2, 3});
  CHECK(second.get() == std::vector<int>{1, 2, 3});
  CHECK(first != second);
  const int* own = &first[0];
  first.own()[1] = 8;  // it already has its own elements
  CHECK(&first[0] == own);
  SharedList<int> none;
  CHECK(none.empty());
  none.own().push_back(4);
  CHECK(none == SharedList<int>{4});
}
