// Plans, and their memory and time.
#include "report/gathered.hpp"

namespace xtape::report_data {

namespace {
Json steps_of(const Plan& plan, Strings& strings, Sites& sites) {
  Json op = Json::array(), site = op, module = op, flops = op, bytes = op, seconds = op, again = op;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Plan::Step& step = plan.steps[i];
    op.push_back(strings.of(step.op));
    site.push_back(sites.of(step.site));
    module.push_back(strings.of(step.module));
    flops.push_back(short_number(step.flops));
    bytes.push_back(short_number(step.bytes));
    seconds.push_back(short_number(step.seconds));
    if (step.again) again.push_back(i);
  }
  return {{"op", op},       {"site", site},       {"module", module}, {"flops", flops},
          {"bytes", bytes}, {"seconds", seconds}, {"again", again}};
}

Json buffers_of(const Plan& plan, Strings& strings) {
  Json name = Json::array(), kind = name, bytes = name, offset = name, first = name, last = name;
  for (const Plan::Buffer& buffer : plan.buffers) {
    name.push_back(strings.of(buffer.name));
    kind.push_back(strings.of(buffer.kind));
    bytes.push_back(buffer.bytes);
    offset.push_back(buffer.offset);
    first.push_back(buffer.first);
    last.push_back(buffer.last);
  }
  return {{"name", name}, {"kind", kind}, {"bytes", bytes}, {"offset", offset}, {"first", first}, {"last", last}};
}
}  // namespace

Json plan_of(const Plan& plan, std::size_t limit, Strings& strings, Sites& sites, const std::vector<double>& seconds,
             std::int64_t plays) {
  Json fusions = Json::array();
  for (const Plan::Fusion& fusion : plan.fusions)
    fusions.push_back(Json::array(
        {strings.of(fusion.rule), strings.of(fusion.place), sites.of(fusion.site), strings.of(fusion.miss)}));
  Json measured = Json::array();
  for (const double each : seconds) measured.push_back(short_number(each / static_cast<double>(plays)));
  return {{"limit", limit},
          {"peak", plan.peak_bytes()},
          {"arena", plan.arena_bytes},
          {"parts",
           {{"arena", plan.arena_bytes},
            {"parameters", plan.parameter_bytes},
            {"outputs", plan.output_bytes},
            {"sums", plan.sum_bytes},
            {"constants and inputs", plan.constant_bytes}}},
          {"steps", steps_of(plan, strings, sites)},
          {"buffers", buffers_of(plan, strings)},
          {"fusions", fusions},
          {"measured", measured},
          {"plays", plays}};
}

Json curve_of(const RecordedPlay& play) {
  constexpr std::size_t most = 10;
  const std::vector<MemoryPoint> points = memory_curve(play.tape, play.outputs, play.options);
  Json curve = Json::array();
  const std::size_t count = std::min(most, points.size());
  for (std::size_t i = 0; i < count; ++i) {
    const MemoryPoint& point = points[count == 1 ? 0 : i * (points.size() - 1) / (count - 1)];
    curve.push_back(Json::array({point.bytes, short_number(point.seconds), point.again}));
  }
  return curve;
}

}  // namespace xtape::report_data
