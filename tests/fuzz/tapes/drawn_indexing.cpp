// Draws calls of the indexing ops that their shape rules accept, with numbers of moderate size.
#include <algorithm>

#include "drawn_ops.hpp"

namespace xtape::fuzz {

namespace {
/// x, an axis of x, and indices along the axis: of any shape or, with `alike`, of the shape of x except along the axis.
struct Indexed {
  Ref x, indices;
  std::int64_t axis;
  std::size_t at;
};
std::optional<Indexed> indexed(Drawer& d, Ref x, bool alike) {
  if (rank_of(d, x) == 0) return std::nullopt;
  const std::int64_t axis = d.axis_of(x);
  const std::size_t at = normal(d, x, axis);
  const std::int64_t size = d.shape(x)[at];
  Shape shape = d.shape(x);
  if (alike)
    shape[at] = d.size();
  else
    shape = d.random.one_in(2) ? Shape{d.size()} : d.any_shape();
  if (count_of(shape) > d.most_elements()) return std::nullopt;
  const auto indices = d.indices(shape, size);
  if (!indices) return std::nullopt;
  return Indexed{x, *indices, axis, at};
}

Drawn take(Drawer& d) {
  const auto from = indexed(d, d.any(), false);
  if (!from) return std::nullopt;
  return Draft{{from->x, from->indices}, {{"axis", from->axis}}};
}

Drawn embedding_bag(Drawer& d) {
  const Ref weight = d.floating(1);
  if (rank_of(d, weight) == 0) return std::nullopt;
  Shape bags = d.any_shape();
  bags.push_back(d.size());
  Shape rows = bags;
  for (std::size_t i = 1; i < d.shape(weight).size(); ++i) rows.push_back(d.shape(weight)[i]);
  if (count_of(rows) > d.most_elements()) return std::nullopt;
  const auto indices = d.indices(bags, d.shape(weight)[0]);
  if (!indices) return std::nullopt;
  if (d.random.one_in(2))
    return Draft{{*indices, weight, d.fitting(ValueType{d.type(weight).dtype, bags})}, {{"mode", std::string("sum")}}};
  return Draft{{*indices, weight}, {{"mode", std::string(d.random.pick({"sum", "mean"}))}}};
}

Drawn elements(Drawer& d) {
  const auto from = indexed(d, d.any(), true);
  if (!from) return std::nullopt;
  return Draft{{from->x, from->indices}, {{"axis", from->axis}}};
}

Drawn index_select(Drawer& d) {
  const Ref x = d.number();
  if (rank_of(d, x) == 0) return std::nullopt;
  const std::int64_t axis = d.axis_of(x);
  const auto indices = d.indices({d.size()}, d.shape(x)[normal(d, x, axis)]);
  if (!indices) return std::nullopt;
  return Draft{{x, *indices}, {{"axis", axis}}};
}

Drawn checked_indices(Drawer& d) {
  const std::int64_t size = d.random.between(1, 4);
  const auto indices = d.indices(d.any_shape(), size);
  if (!indices) return std::nullopt;
  return Draft{{*indices}, {{"size", size}, {"wrap", d.random.one_in(2)}}};
}

/// A part of the shape of indices [..., k] without their last axis, and of x without its first k axes; or no part.
Drawn of_several_axes(Drawer& d, bool with_part) {
  const Ref x = d.steady(d.number());
  if (rank_of(d, x) == 0) return std::nullopt;
  const std::int64_t k = d.random.between(1, rank_of(d, x));
  const Shape shape = d.shape(x);
  Shape part{d.random.between(1, 4)}, picked{part[0], k};
  const auto indices = d.indices(picked, *std::min_element(shape.begin(), shape.begin() + k));
  if (!indices) return std::nullopt;
  for (auto i = static_cast<std::size_t>(k); i < shape.size(); ++i) part.push_back(shape[i]);
  if (count_of(part) > d.most_elements()) return std::nullopt;
  if (!with_part) return Draft{{x, *indices}};
  return Draft{{x, *indices, d.steady(d.fitting(ValueType{d.type(x).dtype, part}))},
               {{"reduce", std::string(d.random.pick({"set", "sum", "prod", "mean", "amax", "amin"}))}}};
}

Drawn scattered(Drawer& d, bool by_one_op) {
  const auto into = indexed(d, d.steady(d.number()), true);
  if (!into) return std::nullopt;
  const Ref part = d.steady(d.fitting(ValueType{d.type(into->x).dtype, d.shape(into->indices)}));
  if (by_one_op)
    return Draft{{into->x, into->indices, part},
                 {{"axis", into->axis}, {"reduce", std::string(d.random.pick({"set", "prod", "amax", "amin"}))}}};
  return Draft{{into->x, into->indices, part},
               {{"axis", into->axis},
                {"reduce", std::string(d.random.pick({"set", "sum", "prod", "mean", "amax", "amin"}))},
                {"include_self", d.random.one_in(2)}}};
}

Drawn index_reduce(Drawer& d) {
  const Ref x = d.steady(d.number());
  if (rank_of(d, x) == 0) return std::nullopt;
  Shape part = d.shape(x);
  const auto indices = d.indices({d.size()}, part[0]);
  if (!indices) return std::nullopt;
  part[0] = d.shape(*indices)[0];
  if (count_of(part) > d.most_elements()) return std::nullopt;
  return Draft{{x, *indices, d.steady(d.fitting(ValueType{d.type(x).dtype, part}))},
               {{"reduce", std::string(d.random.pick({"set", "prod", "amax", "amin"}))}}};
}

/// The largest element of no elements is infinite: then there is one segment.
Drawn segments(Drawer& d, bool one, bool floating) {
  const Ref data = d.steady(floating ? d.floating(1) : d.number());
  if (rank_of(d, data) == 0 || d.shape(data)[0] == 0) return std::nullopt;
  const std::int64_t count = one ? 1 : d.random.between(1, 4);
  const auto ids = d.indices({d.shape(data)[0]}, count);
  if (!ids) return std::nullopt;
  return Draft{{data, *ids}, {{"num_segments", count}}};
}

Drawn masked_select(Drawer& d) {
  const Ref x = d.number();
  return Draft{{x, d.mask_for(d.shape(x))}, {{"size", d.random.between(0, 6)}}};
}

Drawn nonzero_static(Drawer& d) {
  return Draft{{d.steady(d.number())}, {{"size", d.random.between(0, 6)}}};
}

Drawn roll(Drawer& d) {
  const Ref x = d.any();
  if (rank_of(d, x) == 0) return Draft{{x}, {{"shifts", List{1}}}};
  return Draft{{x}, {{"shifts", List{d.random.between(-4, 4)}}, {"axis", List{d.axis_of(x)}}}};
}

Drawn repeat_interleave(Drawer& d) {
  const Ref x = d.any();
  if (rank_of(d, x) == 0) return std::nullopt;
  return Draft{{x}, {{"repeats", d.random.between(0, 3)}, {"axis", d.axis_of(x)}}};
}

Drawn bordered(Drawer& d) {
  const Ref x = d.any();
  Draft draft{{x}};
  for (const char* name : {"before", "after"}) {
    List list;
    for (const std::int64_t size : d.shape(x)) list.push_back(d.random.below(std::clamp<std::int64_t>(size, 1, 3)));
    draft.attributes.set(name, list);
  }
  return draft;
}

Drawn added_at(Drawer& d, bool alike) {
  const auto into = indexed(d, d.number(), alike);
  if (!into) return std::nullopt;
  Shape part = d.shape(into->indices);
  if (!alike) {
    const Shape& x = d.shape(into->x);
    const Shape indices = part;
    part = Shape(x.begin(), x.begin() + into->at);
    for (const std::int64_t size : indices) part.push_back(size);
    for (std::size_t i = into->at + 1; i < x.size(); ++i) part.push_back(x[i]);
  }
  if (count_of(part) > d.most_elements()) return std::nullopt;
  return Draft{{into->x, into->indices, d.fitting(ValueType{d.type(into->x).dtype, part})}, {{"axis", into->axis}}};
}

Drawn top_k(Drawer& d) {
  const Ref x = d.steady(d.any([](const ValueType& type) { return type.shape.size() > 0; }));
  if (rank_of(d, x) == 0) return std::nullopt;
  const std::int64_t axis = d.axis_of(x), size = d.shape(x)[normal(d, x, axis)];
  return Draft{
      {x},
      {{"k", d.random.between(0, std::min<std::int64_t>(5, size))}, {"axis", axis}, {"largest", d.random.one_in(2)}}};
}

Drawn kthvalue(Drawer& d) {
  const Ref x = d.steady(d.number());
  if (rank_of(d, x) == 0) return std::nullopt;
  const std::int64_t axis = d.axis_of(x), size = d.shape(x)[normal(d, x, axis)];
  if (size == 0) return std::nullopt;
  return Draft{{x}, {{"k", d.random.between(1, size)}, {"axis", axis}, {"keepdims", d.random.one_in(2)}}};
}

/// At positions that no rounding moves beyond an element.
Drawn quantile(Drawer& d) {
  const Ref x = d.steady(d.floating());
  const auto how = d.random.pick({"linear", "lower", "higher", "nearest", "midpoint"});
  return Draft{{x, d.random.pick({0.137, 0.519, 0.823})},
               {{"keepdims", d.random.one_in(2)}, {"interpolation", std::string(how)}}};
}

/// Any numbers serve as rows: the search is the same for rows that are not sorted.
Drawn searchsorted(Drawer& d) {
  const Ref x = d.steady(d.floating(1));
  return Draft{{d.must("sort", {{x}}), d.steady(d.fitting(x))}, {{"right", d.random.one_in(2)}}};
}
Drawn bucketize(Drawer& d) {
  const Ref x = d.steady(d.floating());
  const Ref edges = d.steady(d.fitting({d.type(x).dtype, {d.size()}}));
  return Draft{{x, d.must("sort", {{edges}})}, {{"right", d.random.one_in(2)}}};
}
Drawn histogram(Drawer& d) {
  const Ref x = d.steady(d.floating());
  const Ref edges = d.steady(d.fitting({d.type(x).dtype, {d.size() + 1}}));
  Draft draft{{x, d.must("sort", {{edges}})}};
  if (d.random.one_in(2)) draft.operands.push_back(d.fitting(x));
  return draft;
}
Drawn bincount(Drawer& d) {
  const std::int64_t length = d.random.between(1, 6);
  const Shape shape = d.any_shape();
  if (count_of(shape) > d.most_elements()) return std::nullopt;
  Draft draft{{*d.indices(shape, length)}, {{"length", length}}};
  if (d.random.one_in(2)) draft.operands.push_back(d.fitting({d.real(), shape}));
  return draft;
}

Drawn cache(Drawer& d) {
  const Ref x = d.any([](const ValueType& type) { return type.shape.size() >= 2; });
  if (rank_of(d, x) < 2) return std::nullopt;
  if (d.has_past(x)) return Draft{{x}};
  ValueType state = d.type(x);
  const std::int64_t axis = d.random.between(1, rank_of(d, x) - 1);
  const std::int64_t capacity = state.shape[static_cast<std::size_t>(axis)] + d.random.below(4);
  state.shape[static_cast<std::size_t>(axis)] = capacity;
  const Ref past = d.source({Dtype::int64, {d.shape(x)[0]}}, {0, static_cast<double>(capacity + 1), d.random.bits()});
  return Draft{{x, d.fitting(state), past}, {{"axis", axis}}};
}
}  // namespace

Hints hints_of_indexing() {
  return {
      {"take", {take, true}},
      {"embedding_bag", {embedding_bag}},
      {"gather", {elements, true}},
      {"take_along_axis", {elements, true}},
      {"index_select", {index_select, true}},
      {"checked_indices", {checked_indices, true}},
      {"gather_nd", {[](Drawer& d) { return of_several_axes(d, false); }, true}},
      {"scatter_nd", {[](Drawer& d) { return of_several_axes(d, true); }, false, true, true}},
      {"scatter_reduce", {[](Drawer& d) { return scattered(d, false); }, false, true, true}},
      {"scatter_elements", {[](Drawer& d) { return scattered(d, true); }, false, true, true}},
      {"index_reduce", {index_reduce, false, true, true}},
      {"segment_sum", {[](Drawer& d) { return segments(d, false, false); }, false, true}},
      {"segment_prod", {[](Drawer& d) { return segments(d, false, false); }, false, true}},
      {"segment_mean", {[](Drawer& d) { return segments(d, false, true); }}},
      {"segment_softmax", {[](Drawer& d) { return segments(d, false, true); }}},
      {"segment_max", {[](Drawer& d) { return segments(d, true, false); }, true, false, true}},
      {"segment_min", {[](Drawer& d) { return segments(d, true, false); }, true, false, true}},
      {"masked_select", {masked_select, true}},
      {"nonzero_static", {nonzero_static, true, false, true}},
      {"roll", {roll, true}},
      {"repeat_interleave", {repeat_interleave, true}},
      {"reflection_pad", {bordered, true}},
      {"replication_pad", {bordered, true}},
      {"circular_pad", {bordered, true}},
      {"cache", {cache, true}},
      {"where", {{}, true}},
      {"masked_fill", {{}, true}},
      {"index_add", {[](Drawer& d) { return added_at(d, false); }, false, true}},
      {"scatter_add", {[](Drawer& d) { return added_at(d, true); }, false, true}},
      {"top_k", {top_k, true, false, true}},
      {"sort", {{}, true, false, true}},
      {"argsort", {{}, true, false, true}},
      {"kthvalue", {kthvalue, true, false, true}},
      {"median", {{}, true, false, true}},
      {"nanmedian", {{}, true, false, true}},
      {"quantile", {quantile, false, true, true}},
      {"nanquantile", {quantile, false, true, true}},
      {"searchsorted", {searchsorted, true, false, true}},
      {"bucketize", {bucketize, true, false, true}},
      {"histogram", {histogram, false, true, true}},
      {"bincount", {bincount, false, true}},
  };
}

}  // namespace xtape::fuzz
