// Traces: events of steps and threads, in the Chrome trace event format.
#include "xtape/trace.hpp"

#include <doctest/doctest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "allocations.hpp"
#include "needs.hpp"
#include "xtape/xtape.hpp"

using namespace xtape;

namespace {
struct LoggedProduct {
  Tape tape;
  Var x = tape.input("x", {256, 256});
  Var y = sum(softmax(matmul(x, x)), {1});
  Array values{Dtype::float32, {256, 256}};

  PlayerOptions options(const std::shared_ptr<Trace>& trace) {
    PlayerOptions options;
    options.trace = trace;
    options.threads = 2;
    return options;
  }
};

nlohmann::json written(const Trace& trace) {
  std::ostringstream out;
  trace.write(out);
  return nlohmann::json::parse(out.str());
}
}  // namespace

TEST_CASE("a trace has an event for each step of each play, in order, while it is on") {
  LoggedProduct product;
  const auto trace = std::make_shared<Trace>();
  Player player(product.tape, {product.y}, product.options(trace));
  player.play({{product.x, product.values}});
  CHECK(trace->events() == 0);
  trace->set_on(true);
  player.play({{product.x, product.values}});
  player.play({{product.x, product.values}});
  const double begin = Trace::now();
  trace->add("more", begin);
  trace->set_on(false);
  player.play({{product.x, product.values}});
  trace->add("not recorded", begin);

  std::vector<std::string> names;
  std::set<std::int64_t> threads;
  std::int64_t own = -1, memory = 0, named = 0;
  double last = 0;
  const nlohmann::json json = written(*trace);
  for (const auto& event : json["traceEvents"]) {
    if (event["ph"] == "C") memory += event["args"]["temporaries"].get<std::int64_t>() > 0 ? 1 : 0;
    if (event["ph"] == "M") ++named;
    if (event["ph"] != "X") continue;
    if (own < 0) own = event["tid"];
    threads.insert(event["tid"].get<std::int64_t>());
    CHECK(event["dur"].get<double>() >= 0);
    CHECK(event["ts"].get<double>() >= last);
    last = event["ts"];
    if (event["tid"] != own) continue;  // another thread that helped
    names.push_back(event["name"]);
    if (event["name"] == "einsum") {
      CHECK(event["args"]["flops"].get<double>() == 2.0 * 256 * 256 * 256);
      CHECK(event["args"]["outputs"] == "float32 (256, 256)");
      CHECK(event["args"]["site"].get<std::string>().find("trace_test.cpp") != std::string::npos);
    }
  }
  std::vector<std::string> expected;
  for (int play = 0; play < 2; ++play)
    for (const Plan::Step& step : player.plan().steps) expected.push_back(step.op);
  expected.emplace_back("more");
  CHECK(names == expected);
  CHECK(named == static_cast<std::int64_t>(threads.size()));
  CHECK(memory > 0);
}

TEST_CASE("a full trace drops events, and recording allocates nothing" * needs_no_sanitizer()) {
  LoggedProduct product;
  const auto trace = std::make_shared<Trace>(3);
  Player player(product.tape, {product.y}, product.options(trace));
  const std::vector<Feed> feeds{{product.x, product.values}};
  trace->set_on(true);
  player.play(feeds);
  const AllocationCount before;
  for (int i = 0; i < 5; ++i) player.play(feeds);
  CHECK(before.count() == 0);
  CHECK(trace->events() == 3);
  CHECK(trace->dropped() > 0);
  CHECK(written(*trace)["traceEvents"].size() > 3);
}
