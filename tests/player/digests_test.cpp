// Hashes of the values of a play.
#include <doctest/doctest.h>

#include <algorithm>

#include "allocations.hpp"
#include "base/bytes/encodings.hpp"
#include "xtape/grad.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
struct Example {
  Tape tape;
  Var x, w, h, y, dw;
  xt::xarray<float> values = xt::xarray<float>::from_shape({300, 40});
  Example() {
    x = tape.input("x", {300, 40});
    xt::xarray<float> weight = xt::xarray<float>::from_shape({40, 1100});
    for (std::size_t i = 0; i < weight.size(); ++i) weight.flat(i) = std::sin(static_cast<float>(i));
    for (std::size_t i = 0; i < values.size(); ++i) values.flat(i) = std::cos(static_cast<float>(3 * i));
    w = tape.parameter("w", weight);
    h = dropout(tanh(matmul(x, w)), 0.5);  // more than one piece of a checksum
    y = sum(transpose(h, {1, 0}) * 2.f);
    dw = grad(y, {w})[0];
  }
  std::vector<Digest> digests(int threads, const Passes& passes = {}, std::uint64_t seed = 1) const {
    PlayerOptions options;
    options.threads = threads;
    options.passes = passes;
    options.seed = seed;
    options.digests = true;
    Player player(tape, {y, dw, h}, options);
    player.play({{x, values}});
    return player.digests();
  }
};

bool same(const Digest& a, const Digest& b) {
  return a.node == b.node && a.output == b.output && a.op == b.op && a.site == b.site && a.type == b.type &&
         a.hash == b.hash;
}
}  // namespace

TEST_CASE("digests are the same on any number of threads, and the first that differs is where the values differ") {
  const Example example;
  for (const Passes& passes : {Passes(), Passes::unfused(), Passes::reference()}) {
    const std::vector<Digest> one = example.digests(1, passes), three = example.digests(3, passes);
    CHECK(std::equal(one.begin(), one.end(), three.begin(), three.end(), same));
    const std::vector<Digest> other = example.digests(1, passes, 2);
    REQUIRE(other.size() == one.size());
    const auto first = std::mismatch(one.begin(), one.end(), other.begin(), same).first;
    REQUIRE(first != one.end());
    CHECK(first->node.find("dropout") != std::string::npos);
    CHECK(first->site.find("digests_test.cpp, line ") != std::string::npos);
  }
}

TEST_CASE("a digest is the checksum of the array; sources come first") {
  const Example example;
  PlayerOptions options;
  options.digests = true;
  options.passes = Passes::unfused();
  Player player(example.tape, {example.h, example.y, example.dw}, options);
  CHECK_THROWS_WITH(player.digests(), "the player has not played yet");
  player.play({{example.x, example.values}});
  const std::vector<Digest> found = player.digests();
  const auto hash_of = [&](const Var& var) {
    const Array array(player.view(var));
    return checksum_of(array.data(), array.bytes());
  };
  const auto digest = [&](const std::string& node) {
    const auto is = [&](const Digest& each) { return each.node == node; };
    const auto last = std::find_if(found.rbegin(), found.rend(), is);
    REQUIRE(last != found.rend());
    return last->hash;
  };
  CHECK(found[0].op != found[1].op);
  for (std::size_t i = 0; i < 2; ++i) CHECK((found[i].op == "input" || found[i].op == "parameter"));
  const Array x(example.values);
  CHECK(digest("x") == checksum_of(x.data(), x.bytes()));
  CHECK(digest("#" + std::to_string(example.h.id().node) + " dropout") == hash_of(example.h));
  CHECK(digest("#" + std::to_string(example.y.id().node) + " sum") == hash_of(example.y));
  CHECK(found[2].type == "float32 (300, 1100)");
}

TEST_CASE("layouts do not matter: without views, values that were strided have the same digests") {
  Tape tape;
  const Var x = tape.input("x", {4, 3});
  const Vars parts = {exp(x), tanh(x)};
  const Var y = concat({transpose(parts[0], {1, 0}), transpose(parts[1], {1, 0})}, 1);
  const auto digests = [&](bool views) {
    PlayerOptions options;
    options.digests = true;
    options.passes.views = views;
    Player player(tape, {y}, options);
    player.play({{x, xt::xarray<float>{{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {1, 0, 1}}}});
    return player.digests();
  };
  const std::vector<Digest> with = digests(true), without = digests(false);
  REQUIRE(with.size() >= 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(same(with[i], without[i]));
}

TEST_CASE("hashing allocates nothing, and a player without the option has no digests") {
  const Example example;
  PlayerOptions options;
  options.digests = true;
  options.threads = 2;
  Player player(example.tape, {example.y, example.dw}, options);
  const std::vector<Feed> feeds = {{example.x, example.values}};
  player.play(feeds);
  const AllocationCount count;
  player.play(feeds, 1);
  if (allocations_are_counted()) CHECK(count.count() == 0);
  Player plain(example.tape, {example.y});
  plain.play(feeds);
  CHECK_THROWS_WITH(plain.digests(), "digests: the player was made without PlayerOptions::digests");
}
