// Draws calls of the losses of sequences.
#include "drawn_ops.hpp"

namespace xtape::fuzz {

namespace {
/// Scans of thousands of steps take minutes where a check unrolls them.
constexpr std::int64_t most_steps = 40;

/// The blank is the last class, so that targets are any others. Losses of inf become 0.
Drawn ctc(Drawer& d) {
  const std::int64_t b = d.size(), t = d.size(), s = d.random.between(0, 3), others = d.random.between(1, 3);
  if (t > most_steps || b * t * (s + others) > d.most_elements()) return std::nullopt;
  const bool single = d.random.one_in(4);
  const Shape rows = single ? Shape{} : Shape{b};
  Shape log_probs = rows, targets = rows;
  log_probs.insert(0, t);
  log_probs.push_back(others + 1);
  targets.push_back(s);
  return Draft{
      {d.must("log_softmax", {{d.fitting({d.real(), log_probs})}}), *d.indices(targets, others),
       *d.indices(rows, t + 1), *d.indices(rows, s + 1)},
      {{"blank", others}, {"reduction", std::string(d.random.pick({"none", "sum"}))}, {"zero_infinity", true}}};
}

/// Emissions, perhaps tags, transitions, and perhaps a mask and the transitions at the two ends.
Drawn field(Drawer& d, bool with_tags) {
  const std::int64_t b = d.size(), t = d.size(), n = d.random.between(1, 3);
  if (t > most_steps || b * t * n * n > d.work_limit()) return std::nullopt;
  const auto array = [&](const Shape& shape) { return d.steady(d.fitting({d.real(), shape})); };
  Draft draft{{array({b, t, n})}};
  if (with_tags) draft.operands.push_back(*d.indices({b, t}, n));
  draft.operands.push_back(array({n, n}));
  if (d.random.one_in(3)) return draft;
  draft.operands.push_back(d.fitting({Dtype::boolean, {b, t}}));
  if (d.random.one_in(2)) return draft;
  draft.operands.push_back(array({n}));
  draft.operands.push_back(array({n}));
  return draft;
}
Drawn tagged(Drawer& d) {
  return field(d, true);
}
Drawn untagged(Drawer& d) {
  return field(d, false);
}
Drawn field_loss(Drawer& d) {
  Drawn draft = field(d, true);
  if (draft) draft->attributes.set("reduction", std::string(d.random.pick({"none", "sum"})));
  return draft;
}
}  // namespace

Hints hints_of_sequences() {
  return {
      {"ctc_loss", {ctc, false, true}},
      {"crf_score", {tagged, false, true}},
      {"crf_log_partition", {untagged, false, true}},
      {"crf_loss", {field_loss, false, true}},
      {"crf_decode", {untagged, false, true, true}},
  };
}

}  // namespace xtape::fuzz
