// What each thread did in a play.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "report/gathered.hpp"
#include "xtape/trace.hpp"

namespace xtape::report_data {

Json trace_of(const Trace& trace) {
  constexpr std::size_t most = 60'000;
  std::stringstream text;
  trace.write(text);
  const Json all = Json::parse(text);
  std::vector<const Json*> events;
  for (const Json& event : all["traceEvents"])
    if (event["ph"] == "X" && event["args"].contains("step")) events.push_back(&event);
  const std::size_t recorded = events.size();
  if (recorded > most) {  // the longest are kept
    const auto duration = [](const Json* event) { return (*event)["dur"].get<double>(); };
    std::ranges::nth_element(events, events.begin() + most, std::greater(), duration);
    events.resize(most);
    std::ranges::sort(events);  // the order of the trace, whose events are in one array
  }
  std::map<std::int64_t, std::int64_t> threads;  // the rows of the threads; the first is that which plays
  Json thread = Json::array(), step = thread, start = thread, length = thread;
  for (const Json* event : events) {
    const auto row = threads.emplace((*event)["tid"].get<std::int64_t>(), threads.size()).first->second;
    thread.push_back(row);
    step.push_back((*event)["args"]["step"]);
    start.push_back(std::llround(10 * (*event)["ts"].get<double>()));  // in tenths of microseconds
    length.push_back(std::llround(10 * (*event)["dur"].get<double>()));
  }
  return {{"threads", threads.size()},
          {"left_out", recorded - events.size()},
          {"thread", thread},
          {"step", step},
          {"start", start},
          {"length", length}};
}

}  // namespace xtape::report_data
