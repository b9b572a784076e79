// Draws calls of the ops on shapes that their shape rules accept, with numbers of moderate size.
#include <algorithm>
#include <limits>

#include "drawn_ops.hpp"

namespace xtape::fuzz {

namespace {
constexpr std::int64_t open = std::numeric_limits<std::int64_t>::max();  // the stop of a slice that goes to the end

Drawn reshape(Drawer& d) {
  const Ref x = d.any();
  List sizes;
  std::int64_t left = count_of(d.shape(x));
  if (left == 0) {
    sizes.assign(d.shape(x).begin(), d.shape(x).end());
    d.random.shuffle(sizes);
    return Draft{{x}, {{"shape", sizes}}};
  }
  for (const std::int64_t factor : {2, 3, 5, 7, 2, 4})
    if (left % factor == 0 && d.random.one_in(2)) {
      sizes.push_back(factor);
      left /= factor;
    }
  sizes.push_back(d.random.one_in(4) ? -1 : left);
  if (d.random.one_in(4)) sizes.push_back(1);
  d.random.shuffle(sizes);
  return Draft{{x}, {{"shape", sizes}}};
}

Drawn broadcast_to(Drawer& d) {
  const Ref x = d.any();
  List sizes(d.shape(x).begin(), d.shape(x).end());
  for (std::int64_t& size : sizes)
    if (size == 1 && d.random.one_in(2)) size = d.size();
  while (sizes.size() < 5 && d.random.one_in(3)) sizes.insert(sizes.begin(), d.size());
  return Draft{{x}, {{"shape", sizes}}};
}

Drawn transpose(Drawer& d) {
  const Ref x = d.any();
  List axes;
  for (std::int64_t i = 0; i < rank_of(d, x); ++i) axes.push_back(d.random.one_in(6) ? i - rank_of(d, x) : i);
  d.random.shuffle(axes);
  if (d.random.one_in(5)) axes.clear();
  return Draft{{x}, {{"axes", axes}}};
}

Drawn expand_dims(Drawer& d) {
  const Ref x = d.any();
  return Draft{{x}, {{"axis", d.random.between(-rank_of(d, x) - 1, rank_of(d, x))}}};
}

Drawn squeeze(Drawer& d) {
  const Ref x = d.any();
  List axes;
  for (std::int64_t i = 0; i < rank_of(d, x); ++i)
    if (d.shape(x)[static_cast<std::size_t>(i)] == 1 && d.random.one_in(2)) axes.push_back(i);
  return Draft{{x}, {{"axis", axes}}};
}

Drawn slice(Drawer& d) {
  const Ref x = d.any();
  List start, stop, step;
  for (const std::int64_t size : d.shape(x)) {
    const std::int64_t by = d.random.pick({1, 1, 1, 2, 3, -1, -1, -2});
    step.push_back(by);
    start.push_back(d.random.one_in(2) ? (by > 0 ? 0 : open) : d.random.between(-size, size));
    stop.push_back(d.random.one_in(2) ? open : d.random.between(-size, size + 1));
  }
  if (d.random.one_in(4) && !start.empty()) start.pop_back();
  if (d.random.one_in(3)) step.clear();
  return Draft{{x}, {{"start", start}, {"stop", stop}, {"step", step}}};
}

/// A slice that is inside x, on every axis from `start` by `step`.
Drawn update_slice(Drawer& d) {
  const Ref x = d.number();
  List start, step;
  Shape part;
  for (const std::int64_t size : d.shape(x)) {
    const std::int64_t by = d.random.pick({1, 1, 2, -1, 3});
    const std::int64_t first = size == 0 ? 0 : d.random.below(size);
    const std::int64_t room = size == 0 ? 0 : by > 0 ? (size - 1 - first) / by + 1 : first / -by + 1;
    part.push_back(d.random.one_in(8) ? 0 : d.random.between(std::min<std::int64_t>(1, room), room));
    start.push_back(d.random.one_in(4) && size > 0 ? first - size : first);
    step.push_back(by);
  }
  const ValueType type{d.type(x).dtype, part};
  return Draft{{x, d.fitting(type)}, {{"start", start}, {"step", step}}};
}

Drawn pad(Drawer& d) {
  const Ref x = d.any();
  List before, after;
  for (std::int64_t i = 0; i < rank_of(d, x); ++i) {
    before.push_back(d.random.pick({0, 0, 1, 3}));
    after.push_back(d.random.pick({0, 1, 2}));
  }
  return Draft{{x}, {{"before", before}, {"after", after}, {"value", d.random.pick({0.0, 1.0, -2.0})}}};
}

Drawn tile(Drawer& d) {
  const Ref x = d.any();
  List repeats;
  for (std::int64_t i = 0; i < rank_of(d, x); ++i) repeats.push_back(d.random.pick({1, 1, 2, 3, 0}));
  return Draft{{x}, {{"repeats", repeats}}};
}

Drawn concat(Drawer& d) {
  const Ref x = d.any();
  if (rank_of(d, x) == 0) return std::nullopt;
  const std::int64_t axis = d.axis_of(x);
  Draft draft{{x}, {{"axis", axis}}};
  for (std::int64_t more = d.random.below(3); more >= 0; --more) {
    ValueType type = d.type(x);
    if (d.random.one_in(3)) type.shape[normal(d, x, axis)] = d.size();
    draft.operands.push_back(d.random.one_in(6) ? x : d.fitting(type));
  }
  return draft;
}

Drawn stack(Drawer& d) {
  const Ref x = d.any();
  Draft draft{{x}, {{"axis", d.random.between(-rank_of(d, x) - 1, rank_of(d, x))}}};
  for (std::int64_t more = d.random.below(3); more > 0; --more)
    draft.operands.push_back(d.random.one_in(4) ? x : d.fitting(x));
  return draft;
}

Drawn split(Drawer& d) {
  const Ref x = d.any();
  if (rank_of(d, x) == 0) return std::nullopt;
  const std::int64_t axis = d.axis_of(x);
  std::int64_t left = d.shape(x)[normal(d, x, axis)];
  List sizes;
  while (sizes.size() < 3 && left > 0 && !d.random.one_in(4)) {
    sizes.push_back(d.random.between(0, left));
    left -= sizes.back();
  }
  sizes.push_back(left);
  return Draft{{x}, {{"sizes", sizes}, {"axis", axis}}};
}

Drawn unstack(Drawer& d) {
  const Ref x = d.any([](const ValueType& type) { return type.shape.size() > 0; });
  const std::int64_t axis = d.axis_of(x);
  if (d.shape(x)[normal(d, x, axis)] > 6) return std::nullopt;
  return Draft{{x}, {{"axis", axis}}};
}

Drawn rearrange(Drawer& d) {
  const Ref x = d.any();
  std::vector<std::string> from, to;
  NamedSizes sizes;
  for (std::int64_t i = 0; i < rank_of(d, x); ++i) {
    const std::int64_t size = d.shape(x)[static_cast<std::size_t>(i)];
    const std::string name(1, static_cast<char>('a' + i));
    if (size > 0 && size % 2 == 0 && d.random.one_in(3)) {
      from.push_back("(" + name + " " + name + "2)");
      to.push_back(name);
      to.push_back(name + "2");
      sizes.add(name, 2);
    } else {
      from.push_back(name);
      to.push_back(name);
    }
  }
  d.random.shuffle(to);
  for (std::size_t i = 0; i + 1 < to.size(); ++i)
    if (d.random.one_in(4)) {
      to[i] = "(" + to[i] + " " + to[i + 1] + ")";
      to.erase(to.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    }
  if (d.random.one_in(5)) to.push_back("1");
  std::string pattern;
  for (const std::string& word : from) pattern += word + " ";
  pattern += "->";
  for (const std::string& word : to) pattern += " " + word;
  return Draft{{x}, {{"pattern", pattern}, {"sizes", sizes}}};
}

Drawn diagonal(Drawer& d) {
  const Ref x = d.any([](const ValueType& type) {
    for (std::size_t i = 1; i < type.shape.size(); ++i)
      if (type.shape[i] == type.shape[i - 1]) return true;
    return false;
  });
  for (std::int64_t i = 1; i < rank_of(d, x); ++i)
    if (d.shape(x)[static_cast<std::size_t>(i)] == d.shape(x)[static_cast<std::size_t>(i - 1)])
      return Draft{{x}, {{"axis1", d.random.one_in(2) ? i - 1 : i - 1 - rank_of(d, x)}, {"axis2", i}}};
  const std::int64_t size = d.size();
  const Ref square = d.fitting(ValueType{d.type(x).dtype, {size, size}});
  return Draft{{square}, {{"axis1", std::int64_t{1}}, {"axis2", std::int64_t{0}}}};
}

Drawn matrices(Drawer& d, const char* attribute) {
  const Ref x = d.any([](const ValueType& type) { return type.shape.size() >= 2; });
  return Draft{{x}, {{attribute, d.random.between(-3, 3)}}};
}
}  // namespace

Hints hints_of_shapes() {
  return {
      {"reshape", {reshape, true}},
      {"broadcast_to", {broadcast_to, true}},
      {"transpose", {transpose, true}},
      {"expand_dims", {expand_dims, true}},
      {"squeeze", {squeeze, true}},
      {"slice", {slice, true}},
      {"update_slice", {update_slice, true}},
      {"pad", {pad, true}},
      {"tile", {tile, true}},
      {"concat", {concat, true}},
      {"stack", {stack, true}},
      {"split", {split, true}},
      {"unstack", {unstack, true}},
      {"rearrange", {rearrange, true}},
      {"diagonal", {diagonal, true}},
      {"diag_embed", {{}, true}},
      {"flip", {{}, true}},
      {"shift_right", {{}, true}},
      {"tril", {[](Drawer& d) { return matrices(d, "diagonal"); }, true}},
      {"triu", {[](Drawer& d) { return matrices(d, "diagonal"); }, true}},
  };
}

}  // namespace xtape::fuzz
