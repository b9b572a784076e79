// Plays a capsule again, and its text.
#include <algorithm>

#include "checksum.hpp"
#include "failing.hpp"

namespace xtape {

RecordedPlay recorded_play(const Capsule& capsule) {
  RecordedPlay play{capsule.tape, {}, {}, {}, capsule.step};
  for (const auto& each : capsule.outputs) play.outputs.push_back(each.value);
  play.options.seed = capsule.seed;
  play.options.precision = capsule.precision;
  return play;
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
    const std::vector<Array> arrays = played(tape, outputs, playing, step);
    for (std::size_t i = 0; i < arrays.size(); ++i) result.outputs.add(capsule.outputs[i].name, arrays[i]);
  } catch (const Error& error) {
    result.error = error.what();
  }
  result.fails = !result.error.empty();
  result.same_bits =
      capsule.failure.error ? result.error == capsule.failure.what : result.outputs.size() == capsule.digests.size();
  for (std::size_t i = 0; i < result.outputs.size(); ++i) {
    const Array& output = result.outputs[i].value;
    result.fails = result.fails || not_finite(output).any();
    result.same_bits = result.same_bits && i < capsule.digests.size() &&
                       checksum_of(output.data(), output.bytes()) == capsule.digests[i];
  }
  return result;
}

std::string to_string(const Failure& failure) {
  const std::string of_call = failure.call == failure.op || failure.call.empty() ? "" : " of " + failure.call;
  std::string text =
      failure.error ? failure.what : failure.what + " in " + failure.node + of_call + " -> " + failure.type;
  if (failure.backward) text += ", in the backward pass";
  if (failure.time_step >= 0) text += ", at time step " + std::to_string(failure.time_step);
  if (!failure.error && !failure.site.empty()) text += "  at " + failure.site;
  return text;
}

}  // namespace xtape
