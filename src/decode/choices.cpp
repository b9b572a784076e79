#include "choices.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lanes.hpp"
#include "threads.hpp"
#include "vector_math.hpp"

namespace xtape::decode {

namespace {
/// log sum exp(x); NaN or infinite if it is not defined.
template <class T>
double log_sum_exp(const T* x, std::int64_t count) {
  using Batch = xsimd::batch<T>;
  constexpr T lowest = -std::numeric_limits<T>::infinity();
  Batch greatest(lowest);
  for_lanes<T>(count,
               [&](std::int64_t i, const auto& lanes) { greatest = xsimd::max(greatest, lanes.load(x + i, lowest)); });
  const T top = fold_lanes(greatest, [](const auto& a, const auto& b) { return a > b ? a : b; });
  const Batch shift(top);
  Batch sum(T{0});
  for_lanes<T>(count,
               [&](std::int64_t i, const auto& lanes) { sum += vector_math::exp(lanes.load(x + i, lowest) - shift); });
  return static_cast<double>(top) + std::log(static_cast<double>(add_lanes(sum)));
}

/// Collects the largest `count` elements in one pass over the row. `best` stays sorted, so that a single comparison
/// rejects almost every element. Elements of minus infinity, whose probability is 0, are left out.
template <class T>
void collect(const T* x, std::int64_t classes, std::size_t count, const std::vector<std::int32_t>& never,
             std::vector<Choice>& best) {
  best.clear();
  T least = -std::numeric_limits<T>::infinity();
  for (std::int64_t i = 0; i < classes; ++i) {
    if (!(x[i] > least)) continue;
    const auto token = static_cast<std::int32_t>(i);
    if (std::find(never.begin(), never.end(), token) != never.end()) continue;
    if (best.size() == count) best.pop_back();
    const auto value = static_cast<double>(x[i]);
    const auto above = [](double logit, const Choice& choice) { return logit > choice.log_probability; };
    best.insert(std::upper_bound(best.begin(), best.end(), value, above), {token, value});
    if (best.size() == count) least = static_cast<T>(best.back().log_probability);
  }
}

template <class T>
bool choose(const T* x, std::int64_t classes, std::int64_t count, const std::vector<std::int32_t>& never,
            std::vector<Choice>& best) {
  const double total = log_sum_exp(x, classes);
  if (!std::isfinite(total)) return false;
  collect(x, classes, static_cast<std::size_t>(count), never, best);
  for (Choice& choice : best) choice.log_probability -= total;
  return true;
}
}  // namespace

void likeliest(const LogitRows& logits, const std::vector<std::int64_t>& rows, std::int64_t count,
               const std::vector<std::int32_t>& never, int threads, std::vector<std::vector<Choice>>& choices) {
  choices.resize(rows.size());
  for (auto& list : choices) list.reserve(static_cast<std::size_t>(count));
  std::vector<char> defined(rows.size(), 1);
  const std::int64_t grain = std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, logits.classes));
  parallel_for(threads, static_cast<std::int64_t>(rows.size()), grain, [&](std::int64_t begin, std::int64_t finish) {
    for (std::int64_t k = begin; k < finish; ++k) {
      const auto i = static_cast<std::size_t>(k);
      const std::int64_t place = rows[i] * logits.stride;
      defined[i] =
          logits.dtype == Dtype::float64
              ? choose(static_cast<const double*>(logits.first) + place, logits.classes, count, never, choices[i])
              : choose(static_cast<const float*>(logits.first) + place, logits.classes, count, never, choices[i]);
    }
  });
  if (std::find(defined.begin(), defined.end(), char{0}) != defined.end())
    throw Error("the logits contain NaN or infinity, or no finite value: they cannot be searched");
}

}  // namespace xtape::decode
