// Plays a capsule again, and writes its text.
#include <algorithm>

#include "base/arrays/elements.hpp"
#include "base/bytes/encodings.hpp"
#include "inspect/failing.hpp"

namespace xtape {

RecordedPlay recorded_play(const Capsule& capsule) {
  RecordedPlay play;
  play.tape = capsule.tape;
  play.step = capsule.step;
  for (const auto& each : capsule.outputs) play.outputs.push_back(each.value);
  play.options.seed = capsule.seed;
  play.options.precision = capsule.precision;
  play.options.bits = capsule.bits;
  return play;
}

bool has_element(const Shape& shape, const std::vector<std::int64_t>& index) {
  if (index.size() != shape.size()) return false;
  for (std::size_t axis = 0; axis < index.size(); ++axis)
    if (index[axis] < 0 || index[axis] >= shape[axis]) return false;
  return true;
}

Var failing_output(const Capsule& capsule) {
  const std::vector<std::int64_t>& element = capsule.failure.element;
  for (const auto& [name, output] : capsule.outputs)
    if (element.empty() || has_element(output.shape(), element)) return output;
  throw Error("no output of the capsule has the element " + index_text(element));
}

Replay replay(const Capsule& capsule, const ReplayOptions& options) {
  auto [tape, outputs, inputs, playing, step] = recorded_play(capsule);
  Replay result;
  playing.threads = options.threads;
  playing = for_single_nodes(playing);
  if (options.reference) playing.passes = Passes::reference();
  try {
    if (options.float64) {
      const WidenedTape wide = in_float64(tape, outputs);
      tape = wide.tape;
      outputs = wide.vars;
    }
    std::vector<Array> arrays = played(tape, outputs, playing, step);
    for (std::size_t i = 0; i < arrays.size(); ++i) result.outputs.add(capsule.outputs[i].name, arrays[i]);
  } catch (const Error& error) {
    result.error = error.what();
  }
  result.fails = !result.error.empty();
  result.same_bits =
      capsule.failure.error ? result.error == capsule.failure.what : result.outputs.size() == capsule.digests.size();
  for (std::size_t i = 0; i < result.outputs.size(); ++i) {
    const Array& output = result.outputs[i].value;
    result.fails = result.fails || !all_finite(output);
    result.same_bits = result.same_bits && i < capsule.digests.size() &&
                       checksum_of(output.data(), output.bytes()) == capsule.digests[i];
  }
  return result;
}

namespace {
/// The causes of a failure begin at the failing call and go back. The leading causes are those before the first cause
/// whose values are all finite. Returns the last leading cause. If there is none, returns the last of all causes if
/// this cause is an element of a batch, and null otherwise.
const Cause* source_of(const Failure& failure) {
  const Cause* source = nullptr;
  for (const Cause& cause : failure.causes) {
    if (cause.range.all_finite()) break;
    source = &cause;
  }
  if (source == nullptr && !failure.causes.empty() && !failure.causes.back().row.empty())
    source = &failure.causes.back();
  return source;
}

std::string what_in(const Cause& cause) {
  if (!cause.number.empty()) return cause.number;
  return cause.range.nans > 0 ? "NaN" : cause.range.positive_infinities > 0 ? "inf" : "-inf";
}
}  // namespace

std::string to_string(const Cause& cause) {
  std::string text = cause.node + " -> " + cause.type + ": " + to_string(cause.range);
  if (!cause.element.empty()) text += ", " + index_text(cause.element) + " is " + cause.number;
  if (cause.time_steps.size() == 1) text += ", at time step " + std::to_string(cause.time_steps[0]);
  if (cause.time_steps.size() > 1)
    text += ", at time steps " + std::to_string(cause.time_steps.front()) + " to " +
            std::to_string(cause.time_steps.back());
  if (!cause.site.empty()) text += "  at " + cause.site;
  if (!cause.row.empty()) text += "  (" + cause.row + ")";
  return text;
}

std::string to_string(const Failure& failure) {
  const std::string of_call = failure.call == failure.op || failure.call.empty() ? "" : " of " + failure.call;
  std::string text =
      failure.error ? failure.what : failure.what + " in " + failure.node + of_call + " -> " + failure.type;
  if (failure.backward) text += ", in the backward pass";
  for (std::size_t i = 0; i < failure.time_steps.size(); ++i)
    text += (i == 0 ? ", at time step " : ", step ") + std::to_string(failure.time_steps[i]) +
            (i == 0 ? "" : " of the scan within");
  if (failure.error) return text;
  if (!failure.site.empty()) text += "  at " + failure.site;
  if (const Cause* source = source_of(failure)) {
    text += ", from " + what_in(*source) + " in " + source->node;
    if (!source->element.empty()) text += " " + index_text(source->element);
    if (!source->site.empty() && source->site != failure.site) text += "  at " + source->site;
    if (!source->row.empty()) text += "  (" + source->row + ")";
  }
  if (failure.passed_on) text += "; no call makes it of finite numbers";
  return text;
}

}  // namespace xtape
