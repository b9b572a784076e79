#include <algorithm>
#include <cmath>
#include <limits>

#include "base/messages/wording.hpp"
#include "base/threads/threads.hpp"
#include "decode/sampler.hpp"
#include "kernels/table/kernels.hpp"
#include "xtape/tape.hpp"

namespace xtape::decode {

namespace {
/// Collects the `count` largest elements in one pass over the row. `best` stays sorted, so that a single comparison
/// rejects almost every element. Leaves out elements of minus infinity, because their probability is 0.
template <class T>
void collect(const T* x, std::int64_t classes, std::size_t count, const std::vector<std::int32_t>& never,
             std::vector<ScoredToken>& best) {
  best.clear();
  T least = -std::numeric_limits<T>::infinity();
  const auto next = [&](std::int64_t from) { return kernels().of<T>().first_above(x, from, classes, least); };
  for (std::int64_t i = next(0); i < classes; i = next(i + 1)) {
    const auto token = static_cast<std::int32_t>(i);
    if (contains(never, token)) continue;
    if (best.size() == count) best.pop_back();
    const auto value = static_cast<double>(x[i]);
    const auto above = [](double logit, const ScoredToken& choice) { return logit > choice.log_probability; };
    best.insert(std::upper_bound(best.begin(), best.end(), value, above), {token, value});
    if (best.size() == count) least = static_cast<T>(best.back().log_probability);
  }
}

template <class T>
bool choose(const T* x, std::int64_t classes, std::int64_t count, const std::vector<std::int32_t>& never,
            std::vector<ScoredToken>& best) {
  const double total = kernels().of<T>().log_sum_exp(x, classes);
  if (!std::isfinite(total)) return false;
  collect(x, classes, static_cast<std::size_t>(count), never, best);
  for (ScoredToken& choice : best) choice.log_probability -= total;
  return true;
}
}  // namespace

const ArrayView& checked_logits(const ArrayView& result) {
  if (result.shape().size() != 3 || !is_floating(result.dtype()))
    throw DefinitionError("the function must give floats [rows, tokens, classes], not " +
                          to_string(ValueType{result.dtype(), result.shape()}));
  return result;
}

void likeliest(const ArrayView& logits, const std::vector<std::int64_t>& rows, std::int64_t count,
               const std::vector<std::int32_t>& never, int threads, std::vector<std::vector<ScoredToken>>& choices) {
  choices.resize(rows.size());
  for (auto& list : choices) list.reserve(static_cast<std::size_t>(count));
  std::vector<char> defined(rows.size(), 1);
  const std::int64_t classes = logits.shape()[2];
  const std::int64_t grain = std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, classes));
  parallel_for(threads, std::ssize(rows), grain, [&](std::int64_t begin, std::int64_t finish) {
    for (std::int64_t k = begin; k < finish; ++k) {
      const auto i = static_cast<std::size_t>(k);
      const std::int64_t place = rows[i] * classes;  // players return dense outputs
      defined[i] = logits.dtype() == Dtype::float64
                       ? choose(logits.as<double>() + place, classes, count, never, choices[i])
                       : choose(logits.as<float>() + place, classes, count, never, choices[i]);
    }
  });
  if (contains(defined, char{0}))
    throw Error("the logits contain NaN or infinity, or no finite value: they cannot be searched");
}

}  // namespace xtape::decode
