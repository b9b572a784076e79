// The wording of a failure: labels, elements, time steps and causes.
#include <algorithm>
#include <sstream>

#include "base/arrays/elements.hpp"
#include "base/arrays/visit.hpp"
#include "inspect/failing.hpp"
#include "xtape/op/op.hpp"

namespace xtape {

std::int64_t Unrolled::step_of(std::int32_t index) const {
  if (!steps) return -1;
  const Node& node = tape.node(index);
  const auto is_same = [&](const Node& other) { return other.op == node.op && other.site.key == node.site.key; };
  std::int64_t before = 0, in_body = 0;
  for (std::int32_t i = 0; i < index; ++i) before += is_same(tape.node(i));
  for (std::size_t i = 0; i < body.size(); ++i) in_body += is_same(body.node(i));
  if (in_body == 0) return -1;
  return steps->reverse ? steps->length - 1 - before / in_body : before / in_body;
}

std::int32_t node_in_play(const Program& program, std::int32_t index) {
  return program.origins[{index, 0}].node;
}

void add_step(std::vector<std::int64_t>& time_steps, const Unrolled* steps, const Program& program,
              std::int32_t index) {
  const std::int64_t step = steps == nullptr ? -1 : steps->step_of(node_in_play(program, index));
  if (step >= 0) time_steps.insert(time_steps.begin(), step);
}

namespace {
std::string element_text(const Array& array, const std::vector<std::int64_t>& index) {
  std::int64_t flat = 0;
  for (std::size_t axis = 0; axis < index.size(); ++axis) flat = flat * array.shape()[axis] + index[axis];
  std::ostringstream text;
  visit_elements(array, [&](const auto* elements) {
    const auto number = static_cast<double>(elements[flat]);
    if (kind_of(number) == Kind::finite)
      text << number;
    else
      text << name_of(kind_of(number));
  });
  return text.str();
}

/// Returns the range of the elements of both values.
Range together(const Range& a, const Range& b) {
  Range range = a.finite() == 0 ? b : a;
  if (a.finite() > 0 && b.finite() > 0) {
    range.min = std::min(a.min, b.min);
    range.max = std::max(a.max, b.max);
  }
  range.count = a.count + b.count;
  range.zeros = a.zeros + b.zeros;
  range.nans = a.nans + b.nans;
  range.positive_infinities = a.positive_infinities + b.positive_infinities;
  range.negative_infinities = a.negative_infinities + b.negative_infinities;
  return range;
}

/// Describes the causes. Values of the same call at several steps form one cause.
std::vector<Cause> described_causes(const Program& program, const Causes& causes, const Unrolled* steps) {
  std::vector<Cause> list;
  for (const CausingValue& each : causes.values) {
    const Node& node = program.node(each.value.node);
    const Array& array = causes.arrays.at(each.value);
    Cause cause{label_of(program, each.value), to_string(program.type(each.value)), to_string(node.site),
                range_of(array)};
    if (!each.element.empty()) {
      cause.element = each.element;
      cause.number = element_text(array, each.element);
    }
    if (steps == nullptr) {
      list.push_back(cause);
      continue;
    }
    // Labels within a body are numbered anew at each step, so calls are compared by the text after the number.
    add_step(cause.time_steps, steps, program, each.value.node);
    const auto name = [](const Cause& of) { return of.node.substr(std::min(of.node.find(' '), of.node.size())); };
    const auto same = std::ranges::find_if(list, [&](const Cause& other) {
      return !cause.time_steps.empty() && !other.time_steps.empty() && name(other) == name(cause) &&
             other.site == cause.site && other.type == cause.type;
    });
    if (same == list.end()) {
      list.push_back(cause);
      continue;
    }
    same->range = together(same->range, cause.range);
    if (same->time_steps.back() != cause.time_steps[0]) same->time_steps.push_back(cause.time_steps[0]);
  }
  return list;
}

void describe_outputs(Failure& failure, const Causes& causes) {
  const MarkedElement worst = worst_of(causes.failures).value_or(MarkedElement{});
  const Array& output = causes.outputs.at(worst.array);
  failure.what = name_of(worst.kind);
  failure.type = to_string(ValueType{output.dtype(), output.shape()});
  failure.range = range_of(output);
  failure.element = index_of(worst.element, output.shape());
}
}  // namespace

Failure described(const Program& program, const FailingNode& failing, const Causes& causes, const Unrolled* steps) {
  const Node& node = program.node(failing.node);
  Failure failure;
  failure.op = node.op->name;
  failure.node = label_of(program, {failing.node, 0});
  failure.site = to_string(node.site);
  failure.call = node.site.op != nullptr ? node.site.op->name : node.op->name;
  failure.passed_on = !failing.chain.empty();
  failure.causes = described_causes(program, causes, steps);
  add_step(failure.time_steps, steps, program, failing.node);
  if (failing.error.empty()) {
    describe_outputs(failure, causes);
  } else {
    failure.error = true;
    failure.what = failing.error;
    failure.type = to_string(node.outputs[0]);
  }
  return failure;
}

}  // namespace xtape
