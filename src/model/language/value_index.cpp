// x[...]: records a slice, then drops and adds axes.
#include <algorithm>

#include "model/language/value.hpp"
#include "xtape/ops.hpp"

namespace xtape::model {

std::uint64_t steps_between(std::int64_t first, std::int64_t last, std::int64_t step) {
  const auto low = static_cast<std::uint64_t>(first), high = static_cast<std::uint64_t>(last);
  const auto stride = static_cast<std::uint64_t>(step);  // unsigned, because differences may exceed 2^63
  if (step > 0) return first < last ? (high - low - 1) / stride + 1 : 0;
  return first > last ? (low - high - 1) / (0 - stride) + 1 : 0;
}

Range range_of(std::int64_t count, std::int64_t start, std::int64_t stop, std::int64_t step) {
  const std::int64_t low = step > 0 ? 0 : -1, high = step > 0 ? count : count - 1;
  const auto place = [&](std::int64_t at) { return std::clamp(at < 0 ? at + count : at, low, high); };
  const std::int64_t last = stop == open_end ? (step > 0 ? high : low) : place(stop);
  const auto steps = static_cast<std::int64_t>(steps_between(place(start), last, step));
  return {place(start), steps > 1 ? step : 1, steps};
}

Var index_var(const Var& x, const std::vector<AxisIndex>& axes) {
  using Kind = AxisIndex::Kind;
  const auto named = std::ranges::count_if(
      axes, [](const AxisIndex& axis) { return axis.kind == Kind::at || axis.kind == Kind::range; });
  const auto rank = static_cast<std::int64_t>(x.rank());
  if (named > rank)
    throw ShapeError("the index names " + std::to_string(named) + " axes of " + to_string(x.type()) + ", which has " +
                     std::to_string(rank));
  std::vector<std::int64_t> start, stop, step, drop, fresh;
  const auto take_whole = [&](std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      start.push_back(0);
      stop.push_back(open_end);
      step.push_back(1);
    }
  };
  bool narrows = false;
  std::int64_t result_axis = 0;
  bool seen_ellipsis = false;
  for (const AxisIndex& axis : axes) {
    const auto here = std::ssize(start);
    switch (axis.kind) {
      case Kind::ellipsis:
        if (seen_ellipsis) throw ShapeError("'...' can appear only once in an index");
        seen_ellipsis = true;
        take_whole(rank - named);
        result_axis += rank - named;
        break;
      case Kind::fresh:
        fresh.push_back(result_axis++);
        break;
      case Kind::range:
        start.push_back(axis.start);
        stop.push_back(axis.stop);
        step.push_back(axis.step);
        narrows = narrows || axis.start != 0 || axis.stop != open_end || axis.step != 1;
        ++result_axis;
        break;
      case Kind::at: {
        const std::int64_t size = x.shape()[here];
        if (axis.at < -size || axis.at >= size)
          throw ShapeError("index " + std::to_string(axis.at) + " is out of range for axis " + std::to_string(here) +
                           " of " + to_string(x.type()));
        const std::int64_t at = axis.at < 0 ? axis.at + size : axis.at;
        start.push_back(at);
        stop.push_back(at + 1);
        step.push_back(1);
        drop.push_back(here);
        narrows = true;
      }
    }
  }
  take_whole(rank - std::ssize(start));
  Var result = narrows ? slice(x, start, stop, step) : x;
  if (!drop.empty()) result = squeeze(result, drop);
  for (const std::int64_t axis : fresh) result = expand_dims(result, axis);
  return result;
}

}  // namespace xtape::model
