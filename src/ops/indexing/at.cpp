// Var::at, recorded as slice and reshape.
#include <algorithm>

#include "tape/calls.hpp"
#include "xtape/ops.hpp"

namespace xtape {

Index::Index(const char* dots) : kind_(Kind::rest) {
  if (dots == nullptr) throw Error("at: the text of an index is null");
  if (std::string(dots) != "...") throw Error(std::string("at: the index '") + dots + "' is a text, but not \"...\"");
}

namespace {
/// The arguments of `slice`, and the axes of the result.
class Chosen {
 public:
  Chosen(const Shape& sizes, const std::vector<Index>& indices) : sizes_(sizes) {
    const auto count = [&](Index::Kind kind) {
      return static_cast<std::size_t>(
          std::ranges::count_if(indices, [&](const Index& each) { return each.kind() == kind; }));
    };
    const std::size_t named = count(Index::Kind::place) + count(Index::Kind::slice);
    if (count(Index::Kind::rest) > 1) throw Error("at: \"...\" stands for all other axes, so that it occurs once");
    if (named > sizes.size())
      throw ShapeError("at: " + std::to_string(named) + " indices for an array of shape " + to_string(sizes));
    for (const Index& each : indices) {
      if (each.kind() == Index::Kind::new_axis)
        axes_.push_back(new_axis);
      else if (each.kind() == Index::Kind::rest)
        keep_until(start.size() + sizes.size() - named);
      else
        take(each);
    }
    keep_until(sizes.size());
  }

  Shape shape_of(const Shape& part) const {
    Shape shape;
    for (const std::size_t axis : axes_) shape.push_back(axis == new_axis ? 1 : part[axis]);
    return shape;
  }

  /// Returns whether an index selects only a part of an axis, or changes the order of the axis.
  bool cuts() const {
    const auto is = [](std::int64_t number) { return [number](std::int64_t each) { return each == number; }; };
    return !(std::ranges::all_of(start, is(0)) && std::ranges::all_of(stop, is(open_end)) &&
             std::ranges::all_of(step, is(1)));
  }

  std::vector<std::int64_t> start, stop, step;

 private:
  static constexpr std::size_t new_axis = Shape::max_rank;

  void keep_until(std::size_t axis) {
    while (start.size() < axis) take(Slice(0));
  }

  void take(const Index& index) {
    const std::size_t axis = start.size();
    const Slice& slice = index.slice();
    const bool drops = index.kind() == Index::Kind::place;
    if (drops && (slice.start < -sizes_[axis] || slice.start >= sizes_[axis]))
      throw ShapeError("at: the index " + std::to_string(slice.start) + " is outside axis " + std::to_string(axis) +
                       " of an array of shape " + to_string(sizes_));
    if (!drops) axes_.push_back(axis);
    start.push_back(slice.start);
    stop.push_back(!drops ? slice.stop : slice.start == -1 ? open_end : slice.start + 1);
    step.push_back(slice.step);
  }

  const Shape& sizes_;
  std::vector<std::size_t> axes_;  // for each axis of the result: the axis of the part, or new_axis
};
}  // namespace

Var Var::at(std::initializer_list<Index> indices, Caller caller) const {
  return at_place(caller, [&] {
    const Chosen parts(shape(), indices);
    const Var part = parts.cuts() ? slice(Argument(*this, caller), parts.start, parts.stop, parts.step) : *this;
    const Shape shape = parts.shape_of(part.shape());
    return shape == part.shape() ? part : reshape(Argument(part, caller), shape);
  });
}

Var Var::at(const Index& a, const Index& b, const Index& c, const Index& d, Caller caller) const {
  if (d.kind() != Index::Kind::none) return at({a, b, c, d}, caller);
  if (c.kind() != Index::Kind::none) return at({a, b, c}, caller);
  if (b.kind() != Index::Kind::none) return at({a, b}, caller);
  return at({a}, caller);
}

}  // namespace xtape
