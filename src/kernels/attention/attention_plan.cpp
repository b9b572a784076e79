#include <bit>

#include "kernels/attention/attention.hpp"
#include "kernels/random/draws.hpp"

namespace xtape {

AttentionPlan plan_of_attention(const KernelForm& form, bool gradient) {
  const AttentionLabels letters = labels_of_attention(form.attributes);
  const std::size_t operands = gradient ? 4 : 3;
  const Layout& y = gradient ? form.in[3] : form.out[0];
  Shape scores;
  for (const char letter : letters.scores) {
    const std::size_t at = letters.q.find(letter);
    scores.push_back(at != std::string::npos ? form.shape(0)[at] : form.shape(1)[letters.k.find(letter)]);
  }
  const bool is_masked = form.inputs.size() > operands;
  const Layout mask = is_masked ? form.in[operands] : Layout::dense({});
  const Layout masked = mask.broadcast_to(scores), places = Layout::dense(scores);
  const auto stride = [](const Layout& layout, const std::string& names, char letter) {
    return layout.strides[names.find(letter)];
  };
  const auto matrix = [&](const Layout& layout, const std::string& names, char row, char column) {
    return AttentionPlan::Matrix{stride(layout, names, row), stride(layout, names, column)};
  };
  AttentionPlan plan;
  plan.dtype = form.outputs[0].dtype;
  for (std::size_t i = 0; i < operands; ++i)
    if (form.dtype(i) != plan.dtype) plan.narrow[i] = form.dtype(i);
  plan.queries = scores[letters.scores.find(letters.query)];
  plan.keys = scores.back();
  plan.width = form.shape(0)[letters.q.find(letters.width)];
  plan.value_width = form.shape(2)[letters.v.find(letters.value_width)];
  plan.q = matrix(form.in[0], letters.q, letters.query, letters.width);
  plan.k = matrix(form.in[1], letters.k, letters.key, letters.width);
  plan.v = matrix(form.in[2], letters.v, letters.key, letters.value_width);
  plan.y = matrix(y, letters.y, letters.query, letters.value_width);
  plan.mask = matrix(masked, letters.scores, letters.query, letters.key);
  plan.places_row = stride(places, letters.scores, letters.query);
  if (gradient) {
    plan.dq = matrix(form.out[0], letters.q, letters.query, letters.width);
    plan.dk = matrix(form.out[1], letters.k, letters.key, letters.width);
    plan.dv = matrix(form.out[2], letters.v, letters.key, letters.value_width);
  }
  for (char head : letters.heads) {
    std::array<std::int64_t, 9> steps{};
    const std::array<std::pair<const Layout*, const std::string*>, 6> arrays{{{&form.in[0], &letters.q},
                                                                              {&form.in[1], &letters.k},
                                                                              {&form.in[2], &letters.v},
                                                                              {&y, &letters.y},
                                                                              {&masked, &letters.scores},
                                                                              {&places, &letters.scores}}};
    for (std::size_t i = 0; i < arrays.size(); ++i) steps[i] = stride(*arrays[i].first, *arrays[i].second, head);
    const std::array<const std::string*, 3> names{&letters.q, &letters.k, &letters.v};
    for (std::size_t i = 0; gradient && i < names.size(); ++i) steps[6 + i] = stride(form.out[i], *names[i], head);
    plan.heads.add(scores[letters.scores.find(head)], steps);
  }
  plan.masked = is_masked;
  plan.scale = form.get<double>("scale");
  plan.rate = form.get<double>("rate");
  plan.key = RandomStream::key_of(form.seed, std::bit_cast<std::uint64_t>(form.get<std::int64_t>("draws")));
  plan.threads = form.threads;
  plan.precision = form.precision;
  plan.bits = form.bits;
  return plan;
}

}  // namespace xtape
