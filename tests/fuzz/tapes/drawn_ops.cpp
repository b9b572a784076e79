// What must be known of some ops to draw calls that their shape rules accept, with numbers that stay within reason.
#include <algorithm>
#include <limits>

#include "drawer.hpp"

namespace xtape::fuzz {

namespace {
using List = std::vector<std::int64_t>;
using Drawn = std::optional<Draft>;

constexpr std::int64_t open = std::numeric_limits<std::int64_t>::max();  // of a slice: to the end

std::int64_t rank_of(Drawer& d, Ref x) { return static_cast<std::int64_t>(d.shape(x).size()); }

std::size_t normal(Drawer& d, Ref x, std::int64_t axis) { return normal_axis(axis, d.shape(x).size()); }

// Shapes ----------------------------------------------------------------------------------------------------------------

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

/// A part that lies inside x, on every axis from `start` by `step`.
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
      sizes.emplace_back(name, 2);
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

// Products --------------------------------------------------------------------------------------------------------------

/// Letters for the axes of operands: equal sizes often get one letter.
struct Letters {
  std::map<char, std::int64_t> sizes;
  std::string of(Drawer& d, const Shape& shape, bool repeats) {
    std::string own;
    for (const std::int64_t size : shape) {
      char letter = static_cast<char>('a' + sizes.size());
      for (const auto& [known, known_size] : sizes)
        if (known_size == size && (repeats || own.find(known) == std::string::npos) && !d.random.one_in(3))
          letter = known;
      sizes[letter] = size;
      own += letter;
    }
    return own;
  }
  double work() const {
    double all = 1;
    for (const auto& [letter, size] : sizes) all *= static_cast<double>(size);
    return all;
  }
  /// Some letters of the operands, in any order, whose sizes multiply to a bounded number.
  std::string result(Drawer& d) const {
    std::string kept;
    std::int64_t count = 1;
    for (const auto& [letter, size] : sizes)
      if (d.random.one_in(2) && count * size <= d.most_elements()) {
        kept += letter;
        count *= size;
      }
    d.random.shuffle(kept);
    return kept;
  }
};

Drawn linear(Drawer& d) {
  const Ref x = d.floating(1);
  const std::int64_t in = d.shape(x).back(), out = d.size();
  const bool turned = d.random.one_in(2);
  const Ref weight = d.fitting(ValueType{d.type(x).dtype, turned ? Shape{out, in} : Shape{in, out}});
  return Draft{{x, weight}, {{"equation", std::string(turned ? "...i,oi->...o" : "...i,io->...o")}}};
}

Drawn einsum(Drawer& d) {
  if (d.random.one_in(4)) return linear(d);
  const Ref first = d.number();
  Draft draft{{first}};
  const bool repeats = d.random.one_in(6);
  Letters letters;
  std::string equation = letters.of(d, d.shape(first), repeats);
  for (std::int64_t more = d.random.pick({0, 1, 1, 1, 1, 2}); more > 0; --more) {
    const Dtype dtype = d.type(first).dtype;
    const Ref next = d.any([&](const ValueType& type) { return type.dtype == dtype; });
    draft.operands.push_back(next);
    equation += "," + letters.of(d, d.shape(next), repeats);
  }
  if (letters.work() > static_cast<double>(d.work_limit())) return std::nullopt;
  if (!d.random.one_in(8)) equation += "->" + letters.result(d);
  draft.attributes = {{"equation", equation}};
  return draft;
}

/// No letter stands in one operand alone: those of a product of matrices, in any order, and of batches.
Drawn einsum_add(Drawer& d) {
  const Ref a = d.floating(1);
  std::string of_a, of_b, of_y;
  Shape b, y;
  for (std::size_t i = 0; i < d.shape(a).size(); ++i) {
    const char letter = static_cast<char>('a' + i);
    const std::int64_t kind = d.random.below(3);  // a batch's, a sum's, or a's and the result's
    of_a += letter;
    if (kind != 2) (of_b += letter, b.push_back(d.shape(a)[i]));
    if (kind != 1) (of_y += letter, y.push_back(d.shape(a)[i]));
  }
  if (d.random.one_in(2)) {
    of_b += 'z', b.push_back(d.size());
    of_y += 'z', y.push_back(b.back());
  }
  const Dtype dtype = d.type(a).dtype;
  if (static_cast<double>(count_of(b)) * static_cast<double>(count_of(y)) > static_cast<double>(d.work_limit()))
    return std::nullopt;
  return Draft{{a, d.fitting(ValueType{dtype, b}), d.fitting(ValueType{dtype, y})},
               {{"equation", of_a + "," + of_b + "->" + of_y}}};
}

Drawn matmul(Drawer& d) {
  const Ref a = d.floating(1);
  Shape b{d.shape(a).back()};
  if (!d.random.one_in(4)) b.push_back(d.size());
  if (b.size() == 2 && d.shape(a).size() > 2 && d.random.one_in(2)) b.insert(0, d.shape(a)[d.shape(a).size() - 3]);
  return Draft{{a, d.fitting(ValueType{d.type(a).dtype, b})}};
}

/// q, k, v, divisor, mask and the equations, in one of two orders of the axes.
Draft attention(Drawer& d) {
  const bool heads_second = d.random.one_in(2);
  const std::int64_t b = d.size(), h = d.random.between(1, 3), q = d.size(), k = d.size(), e = d.size(), f = d.size();
  const auto array = [&](std::int64_t places, std::int64_t width) {
    return d.fitting(ValueType{d.real(), heads_second ? Shape{b, h, places, width} : Shape{b, places, h, width}});
  };
  const Ref mask = d.mask_for({b, h, q, k});
  Draft draft{{array(q, e), array(k, e), array(k, f), d.source({d.real(), {}}, {1.5, 3}), mask}};
  draft.attributes = {{"scores", std::string(heads_second ? "bhqe,bhke->bhqk" : "bqhe,bkhe->bhqk")},
                      {"outputs", std::string(heads_second ? "bhqk,bhkd->bhqd" : "bhqk,bkhd->bqhd")},
                      {"rate", d.random.pick({0.0, 0.0, 0.25})},
                      {"draws", d.random.between(0, 100)}};
  return draft;
}

Drawn attention_grad(Drawer& d) {
  Draft draft = attention(d);
  const Shape& q = d.shape(std::get<Ref>(draft.operands[0]));
  Shape y = q;
  y[3] = d.shape(std::get<Ref>(draft.operands[2]))[3];
  draft.operands.push_back(d.fitting(ValueType{d.real(), y}));
  return draft;
}

// Losses and normalisations ---------------------------------------------------------------------------------------------

/// Of logits with so many classes; `ignore` is sometimes one of the targets.
Attributes loss_attributes(Drawer& d, std::int64_t classes) {
  Attributes attributes{{"ignore", d.random.pick<std::int64_t>({-100, 0, 1})},
                        {"label_smoothing", d.random.pick({0.0, 0.0, 0.1})}};
  attributes.set("smoothing_excludes", d.random.one_in(3) ? d.random.below(classes) : std::int64_t{-1});
  return attributes;
}

Drawn cross_entropy(Drawer& d) {
  const Ref logits = d.floating(1);
  Shape rows = d.shape(logits);
  const std::int64_t classes = rows.back();
  rows.erase(rows.size() - 1);
  const auto targets = d.indices(rows, classes);
  if (!targets || classes == 0) return std::nullopt;
  return Draft{{logits, *targets}, loss_attributes(d, classes)};
}

Drawn cross_entropy_grad(Drawer& d) {
  Drawn draft = cross_entropy(d);
  if (!draft) return draft;
  const Ref logits = std::get<Ref>(draft->operands[0]);
  const Dtype dtype = d.type(logits).dtype;
  Shape rows = d.shape(logits);
  rows.erase(rows.size() - 1);
  draft->operands.push_back(d.source({dtype, rows}, {1, 3}));
  draft->operands.push_back(d.fitting(ValueType{dtype, {}}));
  return draft;
}

Drawn product_cross_entropy(Drawer& d) {
  const Ref x = d.floating(1);
  const std::int64_t width = d.shape(x).back(), classes = d.size();
  Shape rows = d.shape(x);
  rows.erase(rows.size() - 1);
  const auto targets = d.indices(rows, classes);
  if (!targets || classes == 0) return std::nullopt;
  const bool turned = d.random.one_in(2);
  const Dtype dtype = d.type(x).dtype;
  const Ref weight = d.fitting(ValueType{dtype, turned ? Shape{classes, width} : Shape{width, classes}});
  Draft draft{{x, weight, *targets}, loss_attributes(d, classes)};
  if (d.random.one_in(2)) draft.operands.push_back(d.fitting(ValueType{dtype, {classes}}));
  draft.attributes.set("equation", std::string(turned ? "...d,vd->...v" : "...d,dv->...v"));
  return draft;
}

/// `scales`: how many arrays of the width of the last axis may follow x.
Drawn normalised(Drawer& d, int scales) {
  const Ref x = d.floating(1);
  Draft draft{{x}, {{"epsilon", d.random.pick({0.1, 0.01})}}};
  const ValueType row{d.type(x).dtype, {d.shape(x).back()}};
  for (std::int64_t more = d.random.below(scales + 1); more > 0; --more) draft.operands.push_back(d.fitting(row));
  return draft;
}

/// dy, x, what the forward op keeps of each row (`kept` arrays), and perhaps the weight.
Drawn normalised_grad(Drawer& d, int kept) {
  const Ref x = d.floating(1);
  const Dtype dtype = d.type(x).dtype;
  const std::int64_t width = d.shape(x).back();
  Shape rows = d.shape(x);
  rows.erase(rows.size() - 1);
  Draft draft{{d.fitting(x), x}};
  for (int i = 0; i < kept; ++i) draft.operands.push_back(d.fitting(ValueType{dtype, rows}));
  if (d.random.one_in(2)) draft.operands.push_back(d.fitting(ValueType{dtype, {width}}));
  if (kept == 2) draft.attributes = {{"bias", d.random.one_in(2)}};
  return draft;
}

/// x or y, and the cotangent.
Drawn rowwise_grad(Drawer& d) {
  const Ref y = d.floating(1);
  return Draft{{y, d.fitting(y)}, {{"axis", d.axis_of(y)}}};
}

Drawn masked_softmax(Drawer& d) {
  const Ref x = d.floating(1);
  const ValueType type = d.type(x);
  return Draft{{x, d.source({type.dtype, {}}, {1.5, 3}), d.mask_for(type.shape)}};
}

Drawn masked_softmax_grad(Drawer& d) {
  const Ref y = d.floating(1);
  const Dtype dtype = d.type(y).dtype;
  return Draft{{y, d.fitting(y), d.source({dtype, {}}, {1.5, 3})}};
}

// Indexing --------------------------------------------------------------------------------------------------------------

/// x, an axis of it, and indices along that: of any shape, or (`alike`) with the other sizes of x.
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

Drawn gather(Drawer& d) {
  const auto from = indexed(d, d.any(), true);
  if (!from) return std::nullopt;
  return Draft{{from->x, from->indices}, {{"axis", from->axis}}};
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
  return Draft{{x}, {{"k", d.random.between(0, std::min<std::int64_t>(5, d.shape(x).back()))}}};
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

Drawn clip(Drawer& d) {
  const double low = d.random.pick({-1.0, -0.51, 0.013});
  return Draft{{d.steady(d.floating())}, {{"low", low}, {"high", low + d.random.pick({0.37, 1.2})}}};
}

Drawn pow(Drawer& d) {
  const Ref x = d.number();
  if (!is_floating(d.type(x).dtype)) return Draft{{x, d.random.pick<std::int64_t>({0, 1, 2, 3, -1})}};
  const Ref base = d.positive(x);
  if (d.random.one_in(2)) return Draft{{base, d.random.pick({2.0, 0.5, -0.5, 1.7, -1.0, 3.0})}};
  return Draft{{base, d.partner(base)}};
}

/// Divided by one less than there are at most: not by 0, and not by less.
Drawn variance(Drawer& d) {
  const Ref x = d.floating();
  std::int64_t least = 2;
  for (const std::int64_t size : d.shape(x)) least = std::min(least, size);
  Draft draft{{x}, {{"keepdims", d.random.one_in(2)}, {"correction", least < 2 ? 0 : d.random.below(2)}}};
  if (d.random.one_in(2)) draft.attributes.set("axis", List{d.axis_of(x)});
  if (d.shape(x).empty()) draft.attributes = {};
  return draft;
}

/// By a number that no quotient is near a multiple of.
Drawn divided_down(Drawer& d) {
  if (d.random.one_in(2)) return Draft{{d.steady(d.number()), 0.75}};
  return Draft{{d.steady(d.number()), d.random.between(1, 3)}};
}

Drawn one_of_a_type(Drawer& d) { return Draft{{d.steady(d.number())}}; }
}  // namespace

const Hint& hint_of(const std::string& op) {
  static const Hint none;
  static const std::map<std::string, Hint> hints = {
      // Shapes: what they give is what they got.
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
      {"take", {take, true}},
      {"gather", {gather, true}},
      {"cache", {cache, true}},
      {"where", {{}, true}},
      {"masked_fill", {{}, true}},
      {"stop_gradient", {{}, true}},
      {"neg", {{}, true}},
      // Products.
      {"einsum", {einsum, false, true}},
      {"einsum_add", {einsum_add, false, true}},
      {"matmul", {matmul, false, true}},
      {"attention", {attention}},
      {"attention_grad", {attention_grad, false, true}},
      // Losses and normalisations.
      {"cross_entropy", {cross_entropy, false, true}},
      {"cross_entropy_grad", {cross_entropy_grad, false, true}},
      {"product_cross_entropy", {product_cross_entropy, false, true}},
      {"layer_norm", {[](Drawer& d) { return normalised(d, 2); }, false, true}},
      {"rms_norm", {[](Drawer& d) { return normalised(d, 1); }, false, true}},
      {"layer_norm_grad", {[](Drawer& d) { return normalised_grad(d, 2); }, false, true}},
      {"rms_norm_grad", {[](Drawer& d) { return normalised_grad(d, 1); }, false, true}},
      {"softmax_grad", {rowwise_grad, false, true}},
      {"log_softmax_grad", {rowwise_grad, false, true}},
      {"masked_softmax", {masked_softmax}},
      {"masked_softmax_grad", {masked_softmax_grad, false, true}},
      // Indexing.
      {"index_add", {[](Drawer& d) { return added_at(d, false); }, false, true}},
      {"scatter_add", {[](Drawer& d) { return added_at(d, true); }, false, true}},
      {"top_k", {top_k, true, false, true}},
      // What jumps, or has a kink.
      {"clip", {clip, true, false, true}},
      {"floor", {one_of_a_type, true, false, true}},
      {"sign", {one_of_a_type, true, false, true}},
      {"abs", {one_of_a_type, true, false, true}},
      {"relu", {{}, true, false, true}},
      {"maximum", {{}, true, false, true}},
      {"minimum", {{}, true, false, true}},
      {"max", {{}, true, false, true}},
      {"min", {{}, true, false, true}},
      {"argmax", {{}, true, false, true}},
      {"cast", {{}, false, false, true}},
      {"equal", {{}, false, false, true}},
      {"not_equal", {{}, false, false, true}},
      {"less", {{}, false, false, true}},
      {"less_equal", {{}, false, false, true}},
      {"greater", {{}, false, false, true}},
      {"greater_equal", {{}, false, false, true}},
      {"categorical", {{}, false, false, true}},
      // What needs numbers away from 0, and what makes great ones.
      {"div", {{}, false, true, false, 1}},
      {"mod", {{}, false, false, true, 1}},
      {"floor_divide", {divided_down, false, false, true}},
      {"log", {{}, false, false, false, 0}},
      {"sqrt", {{}, false, false, false, 0}},
      {"rsqrt", {{}, false, false, false, 0}},
      {"log1p", {{}, false, false, false, 0}},
      {"pow", {pow, false, true}},
      {"mul", {{}, false, true}},
      {"add", {{}, false, true}},
      {"square", {{}, false, true}},
      {"var", {variance, false, true}},
      {"exp", {{}, false, true}},
      {"expm1", {{}, false, true}},
      {"sum", {{}, false, true}},
      {"cumsum", {{}, false, true}},
      {"logsumexp", {{}, false, true}},
      {"gelu_grad", {{}, false, true}},
  };
  const auto found = hints.find(op);
  return found == hints.end() ? none : found->second;
}

std::vector<std::string> words_of(const std::string& attribute) {
  if (attribute == "approximate") return {"none", "tanh"};
  return {};
}

}  // namespace xtape::fuzz
