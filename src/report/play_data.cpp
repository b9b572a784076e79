// What a play computes: values, rounding errors, failures, attention weights.
#include <algorithm>
#include <cmath>

#include "base/arrays/visit.hpp"
#include "base/bytes/encodings.hpp"
#include "inspect/node_by_node.hpp"
#include "report/gathered.hpp"
#include "xtape/op/op.hpp"

namespace xtape::report_data {

Json picture_of(const ArrayView& array, std::int64_t most) {
  constexpr std::int64_t bins = 40;
  const Range range = range_of(array);
  std::vector<std::int64_t> counts(bins, 0);
  double sum = 0, squares = 0;
  visit_elements(array, [&](const auto* elements) {
    for (std::int64_t i = 0; i < range.count; ++i) {
      const auto value = static_cast<double>(elements[i]);
      if (!std::isfinite(value)) continue;
      sum += value;
      squares += value * value;
      const double place = fraction_of(value, range.min, range.max) * bins;
      ++counts[static_cast<std::size_t>(std::clamp<double>(place, 0, bins - 1))];
    }
  });
  const auto finite = static_cast<double>(std::max<std::int64_t>(1, range.finite()));
  const auto number = [&](double value) { return range.finite() > 0 ? short_number(value) : Json(nullptr); };
  return {{"min", number(range.min)},
          {"max", number(range.max)},
          {"mean", number(sum / finite)},
          {"rms", number(std::sqrt(squares / finite))},
          {"count", range.count},
          {"zeros", range.zeros},
          {"nan", range.nans},
          {"inf", range.positive_infinities + range.negative_infinities},
          {"bins", counts},
          {"image", image_of(array, range, most)}};
}

Json values_of(const RecordedPlay& play, Strings& strings) {
  constexpr std::size_t most = 4000;
  const NodeByNode nodes(play);
  const auto share = static_cast<std::int64_t>(all_pixels / std::max<std::size_t>(1, nodes.program().tape.size()));
  Json values = Json::array();
  const auto add = [&](ValueId id, const Array& array) {
    if (values.size() >= most) return;
    values.push_back({{"node", strings.of(label_of(nodes.program(), id))},
                      {"output", id.output},
                      {"type", strings.of(to_string(ValueType{array.dtype(), array.shape()}))},
                      {"of", picture_of(array, std::min(share, image_pixels))}});
  };
  const Tape& tape = nodes.program().tape;
  for (std::size_t i = 0; i < tape.size(); ++i)
    if (const Node& node = tape.node(i); node.op->is_source() && !node.name.empty())
      add({static_cast<std::int32_t>(i), 0}, nodes.source(node));
  nodes.play([&](std::int32_t node, const std::vector<Array>&, std::vector<Array>& outputs) {
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i]) add({node, static_cast<std::int32_t>(i)}, outputs[i]);
    return true;
  });
  return values;
}

Json errors_of(const RecordedPlay& play, Strings& strings) {
  Json errors = Json::array();
  for (const NodeError& error : shadow(play))
    errors.push_back(Json::array({strings.of(error.node), short_number(error.total), short_number(error.added())}));
  return errors;
}

Json failure_of(const Capsule& capsule) {
  const Failure& failure = capsule.failure;
  Json causes = Json::array();
  for (const Cause& cause : failure.causes)
    causes.push_back({{"node", cause.node},
                      {"type", cause.type},
                      {"site", cause.site},
                      {"range", to_string(cause.range)},
                      {"element", cause.element},
                      {"number", cause.number},
                      {"steps", cause.time_steps},
                      {"row", cause.row}});
  Json operands = Json::array();
  for (const auto& [name, var] : capsule.operands)
    operands.push_back({{"name", name}, {"type", to_string(var.type())}, {"of", picture_of(var.node().storage)}});
  return {{"text", to_string(failure)},
          {"what", failure.what},
          {"error", failure.error},
          {"node", failure.node},
          {"type", failure.type},
          {"site", failure.site},
          {"backward", failure.backward},
          {"element", failure.element},
          {"range", to_string(failure.range)},
          {"causes", causes},
          {"operands", operands},
          {"version", capsule.version},
          {"set", capsule.instruction_set}};
}

Json attention_of(const std::string& name, const Attention& attention) {
  const Shape& shape = attention.weights.shape();
  std::string bytes;
  for (std::int64_t i = 0; i < attention.weights.count(); ++i) bytes += byte_of(attention.weights.as<float>()[i], 0, 1);
  const auto side = [](const Attention::Side& tokens) {
    return Json{{"text", tokens.text}, {"tokens", tokens.tokens}};
  };
  return {{"name", name},
          {"which", attention.name},
          {"shape", shape},
          {"weights", to_base64(bytes)},
          {"queries", side(attention.queries)},
          {"keys", side(attention.keys)}};
}

}  // namespace xtape::report_data
