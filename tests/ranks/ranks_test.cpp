// The order in which shards are added, the pieces of gradients, and what ranks agree on.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/threads/threads.hpp"
#include "needs.hpp"
#include "ranks/gradient_sum.hpp"
#include "ranks/rank_group.hpp"
#include "ranks/shard_tree.hpp"
#include "thread_ranks.hpp"
#include "xtape/distributed.hpp"
#include "xtape/model.hpp"

using namespace xtape;
using testing::run_ranks;

namespace {
/// Three tables of 13 rows.
Model tables(const std::string& width) {
  const std::string definition = R"json({
    "xtape": 2,
    "name": "tables",
    "hyper": {"width": null},
    "blocks": {
      "table": {
        "hyper": {"width": null},
        "weights": {"weight": {"shape": [13, "width"], "init": "normal"}},
        "inputs": ["i"],
        "result": "take(weight, i, axis=0)"
      }
    },
    "model": {
      "modules": {"all": {"block": "table", "repeat": 3, "width": "width"}},
      "functions": {"sum": {"inputs": {"i": "int [b]"}, "result": "all[0](i) + all[1](i) + all[2](i)"}}
    }
  })json";
  return Model::parse(definition, {.hyper = {{"width", width}}}, "tables.json");
}

/// The sum that the documentation states, computed level by level: neighbours are added until one number is left.
double sum_by_levels(std::vector<double> values) {
  while (values.size() > 1) {
    std::vector<double> next;
    for (std::size_t i = 0; i < values.size(); i += 2)
      next.push_back(i + 1 < values.size() ? values[i] + values[i + 1] : values[i]);
    values = next;
  }
  return values[0];
}

/// Numbers whose sum depends on the order of addition.
std::vector<double> uneven(std::int64_t count) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(std::pow(-7.3, static_cast<double>(i % 19)) / 3);
  return values;
}
}  // namespace

TEST_CASE("shards are added by one tree, whoever computes them") {
  for (std::int64_t shards : {1, 2, 3, 4, 5, 6, 7, 8, 13, 16, 31, 64}) {
    const std::vector<double> values = uneven(shards);
    const double whole = sum_by_levels(values);
    CHECK(ranks::tree_sum(values.data(), shards) == whole);
    for (int ranks = 1; ranks <= std::min<std::int64_t>(shards, 9); ++ranks) {
      // The subtrees that ranks compute cover all shards in order, and each rank needs few slots.
      std::int64_t next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const ranks::Shards own = ranks::shards_of(rank, ranks, shards);
        CHECK(own.first == next);
        ranks::TreeStack stack(shards);
        std::vector<double> slots(20, 0);
        for (std::int64_t shard = own.first; shard < own.last; ++shard) {
          const int slot = stack.next_slot();
          slots[static_cast<std::size_t>(slot)] = values[static_cast<std::size_t>(shard)];
          const int lefts = stack.push({shard, shard + 1});
          for (int k = 1; k <= lefts; ++k)
            slots[static_cast<std::size_t>(slot - k)] += slots[static_cast<std::size_t>(slot - k + 1)];
        }
        const std::vector<ranks::Shards> tops = ranks::tops_of(own, shards);
        REQUIRE(stack.tops().size() == tops.size());
        for (std::size_t i = 0; i < tops.size(); ++i) {
          CHECK(stack.tops()[i] == tops[i]);
          CHECK(tops[i].first == next);
          next = tops[i].last;
          CHECK(slots[i] == sum_by_levels({values.begin() + tops[i].first, values.begin() + tops[i].last}));
        }
        CHECK(ranks::slots_for(own, shards) <= 2 + std::log2(static_cast<double>(shards)));
      }
      CHECK(next == shards);
    }
  }
}

TEST_CASE("the pieces of every bucket are dealt to all ranks, each once") {
  Store weights;
  for (const auto& [name, count] : std::vector<std::pair<std::string, std::int64_t>>{
           {"a", 3000000}, {"b", 7}, {"c", 0}, {"d", 40000}, {"e", 1500000}, {"f", 1}})
    weights.add(name, Array(Dtype::float32, {count}));
  for (int ranks : {1, 2, 3, 8}) {
    const ranks::GradientLayout layout =
        ranks::layout_of(weights, xtape::pieces_of(weights, {OptimizerGroup{"*", {}}}), {5, 3, 4, 2, 1, 0}, ranks);
    CHECK(layout.weight_at[5] == 0);
    std::vector<std::int64_t> elements(static_cast<std::size_t>(ranks), 0);
    std::size_t pieces = 0;
    for (const auto& bucket : layout.buckets) {
      pieces += bucket.pieces.size();
      for (std::size_t piece : bucket.pieces) {
        const auto owner = static_cast<std::size_t>(layout.owner[piece]);
        elements[owner] += layout.pieces[piece].count;
        const ranks::Bytes& range = bucket.of_rank[owner];
        CHECK(layout.piece_at[piece] >= range.first);
        CHECK(layout.piece_at[piece] + static_cast<std::size_t>(layout.pieces[piece].count) * 4 <= range.last);
        for (std::size_t other = 0; other < bucket.of_rank.size(); ++other)
          if (other != owner && bucket.of_rank[other].count() > 0)
            CHECK((layout.piece_at[piece] < bucket.of_rank[other].first ||
                   layout.piece_at[piece] >= bucket.of_rank[other].last));
      }
    }
    CHECK(pieces == layout.pieces.size());
    for (std::int64_t each : elements) CHECK(each > 4540008 / ranks - 3 * Piece::most);
  }
}

TEST_CASE("each rank holds the moments of its share, and what gradients take is known") {
  std::vector<std::size_t> moments(4), gradients(4);
  run_ranks({0, 0, 0, 0}, [&](const std::shared_ptr<Communicator>& communicator) {
    Model model = tables("40000");
    DistributedOptimizer optimizer(model, model.weights().names(), {{}, 4, 1, communicator, 1});
    optimizer.arrange(Vars(model.weights().size()));
    moments[static_cast<std::size_t>(communicator->rank())] = optimizer.moment_bytes();
    gradients[static_cast<std::size_t>(communicator->rank())] = optimizer.gradient_bytes();
  });
  const std::size_t weights = std::size_t{3} * 13 * 40000 * 4;
  std::size_t total = 0;
  for (std::size_t bytes : moments) {
    CHECK(bytes < weights * 2 / 3);
    total += bytes;
  }
  CHECK(total == 2 * weights);
  for (std::size_t bytes : gradients) CHECK(bytes == weights);  // near ranks read each other's
}

TEST_CASE("what ranks have in common is compared, and a difference is shown") {
  const std::string long_text(5000, 'x');
  std::vector<std::string> messages(3);
  run_ranks({0, 0, 1}, [&](const std::shared_ptr<Communicator>& communicator) {
    ranks::RankGroup group(communicator);
    ranks::check_agreement(group, "recipe", long_text);
    try {
      ranks::check_agreement(group, "recipe", long_text + (group.rank() == 2 ? "b" : "a") + long_text);
    } catch (const Error& error) {
      messages[static_cast<std::size_t>(group.rank())] = error.what();
    }
  });
  CHECK(messages[0].find("all ranks must have the same recipe: rank 0 on host0 has …xxx") == 0);
  CHECK(messages[0].find("xab") == std::string::npos);
  CHECK(messages[0].find("rank 2 on host1 has …") != std::string::npos);
  CHECK(messages[0].size() < 400);
  CHECK(messages[1] == messages[0]);
  CHECK(messages[2] == messages[0]);
}

TEST_CASE("a distributed optimiser is called in order") {
  Model model = tables("4");
  DistributedOptimizer optimizer(model, model.weights().names(), {});
  CHECK_THROWS_WITH_AS(optimizer.begin(1), "DistributedOptimizer: arrange() must be called first", Error);
  optimizer.arrange(Vars(model.weights().size()));
  CHECK_THROWS_WITH_AS(optimizer.sum({1}),
                       "DistributedOptimizer: begin() and the plays of all own shards must come before sum()", Error);
  optimizer.begin(1);
  CHECK_THROWS_AS(optimizer.sum({1}), Error);  // the shard has not been played
  CHECK_THROWS_WITH_AS(optimizer.add(), "DistributedOptimizer: expect() and a play must come before add()", Error);
  CHECK_THROWS_WITH_AS(optimizer.update(0.1), "DistributedOptimizer: sum() must be called before update()", Error);
  for (const double bad : {-1.0, std::nan(""), HUGE_VAL})
    CHECK_THROWS_WITH_AS(optimizer.update(0.1, 1, 0, {bad, 0, 0}),
                         doctest::Contains("the deviation of the noise must be"), Error);
  CHECK_THROWS_WITH_AS(optimizer.begin(2), "an update has 1 to 1 shards with rows, not 2", Error);
}

namespace {
UsableCores with_cores(const std::vector<int>& cores, double quota = 0) {
  UsableCores usable;
  usable.cores = cores;
  usable.quota = quota;
  return usable;
}
}  // namespace

TEST_CASE("processes of a machine divide its cores, and no core has two threads") {
  using ranks::divided_cores;
  using Counts = std::vector<int>;
  const UsableCores eight = with_cores({0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(divided_cores({eight}) == Counts{8});
  CHECK(divided_cores({eight, eight}) == Counts{4, 4});
  CHECK(divided_cores({eight, eight, eight}) == Counts{3, 3, 2});
  // Bound to cores of their own, to a socket in pairs, or only one of them.
  CHECK(divided_cores({with_cores({0, 1}), with_cores({2, 3, 4}), with_cores({5})}) == Counts{2, 3, 1});
  const UsableCores socket = with_cores({0, 1, 2, 3}), other = with_cores({4, 5, 6, 7});
  CHECK(divided_cores({socket, socket, other, other}) == Counts{2, 2, 2, 2});
  CHECK(divided_cores({eight, socket}) == Counts{4, 4});
  CHECK(divided_cores({socket, with_cores({3, 4})}) == Counts{3, 2});
  // More processes than cores.
  CHECK(divided_cores({with_cores({0, 1}), with_cores({0, 1}), with_cores({0, 1})}) == Counts{1, 1, 1});
}

TEST_CASE("processes of a control group divide its quota, too") {
  using ranks::divided_cores;
  using Counts = std::vector<int>;
  const std::vector<int> eight{0, 1, 2, 3, 4, 5, 6, 7};
  CHECK(divided_cores({with_cores(eight, 6), with_cores(eight, 6)}) == Counts{3, 3});
  CHECK(divided_cores({with_cores(eight, 1.5), with_cores(eight, 1.5), with_cores(eight, 1.5)}) == Counts{1, 1, 1});
  CHECK(divided_cores({with_cores({0, 1, 2}, 4), with_cores({3}, 4)}) == Counts{2, 1});
  CHECK(divided_cores({with_cores(eight, 100), with_cores(eight)}) == Counts{4, 4});
}

TEST_CASE("ranks share the cores of their own host only, and a rank may ask for a number") {
  const UsableCores here = usable_cores();
  const int most = default_threads().count;
  for (const std::vector<int>& hosts : {std::vector<int>{0}, {0, 0}, {0, 1}, {0, 1, 1, 0, 0}}) {
    std::vector<int> found(hosts.size()), asked(hosts.size());
    run_ranks(hosts, [&](const std::shared_ptr<Communicator>& communicator) {
      ranks::RankGroup group(communicator);
      const auto rank = static_cast<std::size_t>(group.rank());
      found[rank] = ranks::threads_of(group, 0);
      asked[rank] = ranks::threads_of(group, group.rank() == 0 ? 0 : 7);
    });
    if (hosts.size() == 1) CHECK(found[0] == 0);  // thread_count chooses
    CHECK(asked[0] == found[0]);
    for (std::size_t i = 1; i < hosts.size(); ++i) CHECK(asked[i] == 7);
    for (const int host : {0, 1}) {
      int sum = 0, count = 0;
      for (std::size_t i = 0; i < hosts.size(); ++i) {
        if (hosts.size() == 1 || hosts[i] != host) continue;
        CHECK(found[i] >= 1);
        CHECK(found[i] <= most);
        sum += found[i];
        ++count;
      }
      CHECK(sum <= std::max(here.count(), count));
    }
    if (hosts == std::vector<int>{0, 1})
      for (const int count : found) CHECK(count == std::min(most, here.count()));
  }
}

TEST_CASE("a rank shares the cores of its host in all that its process does" * needs_no_sanitizer() *
          needs_no_emulator()) {
  const UsableCores here = usable_cores();
  const int own = std::min(default_threads().count, ranks::divided_cores({here, here})[0]);
  const pid_t child = fork();  // a process of its own, because the choice is that of the process
  REQUIRE(child >= 0);
  if (child == 0) {
    run_ranks({0, 0}, [](const std::shared_ptr<Communicator>& communicator) {
      if (communicator->rank() == 0) return share_cores(communicator);
      ranks::RankGroup other(communicator);
      ranks::threads_of(other, 0);
    });
    std::_Exit(thread_count() == own ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
