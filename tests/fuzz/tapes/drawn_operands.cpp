// Draws the operands of calls: existing values or new ones.
#include <algorithm>

#include "drawer.hpp"

namespace xtape::fuzz {

const Known& Drawer::known(Ref ref) const {
  return all_known_.at(ref);
}

Ref Drawer::any(const std::function<bool(const ValueType&)>& fits) {
  std::vector<Ref> fitting;
  for (const Known& value : values_)
    if (fits(type(value.ref))) fitting.push_back(value.ref);
  if (!fitting.empty()) {
    // The latest values are chosen most often, so that programs become deep.
    const auto count = static_cast<std::int64_t>(fitting.size());
    return fitting[static_cast<std::size_t>(
        random.one_in(2) ? random.below(count) : count - 1 - random.below(std::min<std::int64_t>(3, count)))];
  }
  for (int tries = 0; tries < 50; ++tries) {
    const ValueType made{random.pick({real_, real_, Dtype::int64, Dtype::int32, Dtype::boolean, Dtype::float32}),
                         any_shape()};
    if (fits(made)) return source(made);
  }
  for (std::size_t rank = 1; rank < 4; ++rank)
    if (const ValueType made{real_, Shape::filled(rank, 2)}; fits(made)) return source(made);
  return source({real_, {2, 2, 2}});
}
Ref Drawer::any() {
  return any([](const ValueType&) { return true; });
}
Ref Drawer::number() {
  return any([](const ValueType& type) { return type.dtype != Dtype::boolean; });
}
Ref Drawer::floating(std::size_t least_rank) {
  return any([&](const ValueType& type) {
    return is_floating(type.dtype) && (mixed_ || type.dtype == real_) && type.shape.size() >= least_rank;
  });
}
Ref Drawer::integer() {
  return any([](const ValueType& type) { return is_integer(type.dtype); });
}
Ref Drawer::flag() {
  return any([](const ValueType& type) { return type.dtype == Dtype::boolean; });
}

Ref Drawer::fitting(const ValueType& wanted) {
  std::vector<Ref> same, spread;
  for (const Known& value : values_) {
    const ValueType& own = type(value.ref);
    if (own == wanted) same.push_back(value.ref);
    if (own.dtype != wanted.dtype || own.shape.size() > wanted.shape.size() || own == wanted) continue;
    bool spreads = true;
    for (std::size_t i = 1; i <= own.shape.size(); ++i) {
      const std::int64_t size = own.shape[own.shape.size() - i];
      spreads &= size == 1 || size == wanted.shape[wanted.shape.size() - i];
    }
    if (spreads) spread.push_back(value.ref);
  }
  if (!same.empty() && !random.one_in(5)) return random.pick(same);
  if (!spread.empty() && !random.one_in(3)) {
    const std::vector<std::int64_t> sizes(wanted.shape.begin(), wanted.shape.end());
    if (const auto made = call("broadcast_to", {{random.pick(spread)}, {{"shape", sizes}}})) return *made;
  }
  return source(wanted);
}

Ref Drawer::positive(Ref x) {
  if (known(x).positive || type(x).dtype == Dtype::boolean) return x;
  if (!is_floating(type(x).dtype)) return must("add", {{must("square", {{x}}), std::int64_t{1}}});  // never 0 mod 2^n
  const char* const how = random.pick({"square", "sigmoid", "own_swell"});
  const Ref bounded = how == std::string("square") ? must("tanh", {{x}}) : x;
  const Ref sum = must("add", {{must(how, {{bounded}}), random.pick({0.25, 0.5, 1.0})}});
  all_known_[sum].positive = true;
  return sum;
}

Ref Drawer::steady(Ref x) {
  if (known(x).steady || !is_floating(type(x).dtype)) return x;
  const ValueType own = type(x);
  Step irregular{new_id(), "constant", {}, {}, own, {-1, 1, random.bits() >> 16}};
  const Ref sum = must("add", {{x, *record(irregular, [&] { recorder_.record(irregular); })}});
  all_known_[sum].steady = true;
  for (Known& value : values_)
    if (value.ref == sum) value.steady = true;
  return sum;
}

Term Drawer::partner(Ref x) {
  const Dtype dtype = type(x).dtype;
  if (random.one_in(5)) {
    if (is_floating(dtype) && random.one_in(2)) return random.pick({0.5, -1.5, 2.0, 1e-3});
    return random.pick<std::int64_t>({2, 1, 3, -1});
  }
  for (int tries = 0; tries < 6; ++tries) {
    const Ref other = any();
    if (is_floating(type(other).dtype) && is_floating(dtype) && type(other).dtype != dtype) continue;
    if (type(other).dtype == Dtype::boolean && dtype != Dtype::boolean && !random.one_in(4)) continue;
    try {
      if (count_of(broadcast_shapes({shape(x), shape(other)})) <= most_elements_) return other;
    } catch (const ShapeError&) {
    }
  }
  Shape like = shape(x);
  for (std::int64_t& size : like)
    if (random.one_in(3)) size = 1;
  while (!like.empty() && random.one_in(3)) like = Shape(like.begin() + 1, like.end());
  return fitting(ValueType{dtype, like});
}

Ref Drawer::mask_for(const Shape& wanted) {
  Shape like = wanted;
  for (std::int64_t& size : like)
    if (random.one_in(3)) size = 1;
  while (!like.empty() && random.one_in(3)) like = Shape(like.begin() + 1, like.end());
  return fitting(ValueType{Dtype::boolean, like});
}

std::optional<Ref> Drawer::indices(const Shape& wanted, std::int64_t size) {
  if (size == 0 && count_of(wanted) > 0) return std::nullopt;
  const Dtype dtype = random.one_in(3) ? Dtype::int32 : Dtype::int64;
  if (random.one_in(3) && size > 0)
    for (const Known& value : values_)
      if (is_integer(type(value.ref).dtype) && shape(value.ref) == wanted) return call("mod", {{value.ref, size}});
  const double last = static_cast<double>(std::max<std::int64_t>(0, size - 1));
  return source({dtype, wanted}, {0, last, random.bits() >> 16});
}

Ref Drawer::source(const ValueType& wanted, const Numbers& numbers) {
  const bool stored_narrow = is_floating(wanted.dtype) && random.one_in(12);
  Step step{new_id(), "input", {}, {}, wanted, numbers};
  if (numbers.seed == 0) step.numbers.seed = random.bits() >> 16;
  if (!is_floating(wanted.dtype) && numbers.low == -1 && numbers.high == 1)
    step.numbers = {-3, 5, step.numbers.seed};
  else if (is_floating(wanted.dtype) && random.one_in(4))
    step.numbers.levels = 5;
  const std::int64_t kind = random.below(5);
  if (kind == 3 || (depth_ > 0 && kind < 3)) step.op = "constant";
  if (kind == 4 || stored_narrow) step.op = "parameter";
  if (stored_narrow) step.type.dtype = random.pick({Dtype::bfloat16, Dtype::float16});
  if (count_of(wanted.shape) > 2 * most_elements_) throw Refused("a source would be too big");
  Ref made = *record(step, [&] { recorder_.record(step); });
  if (stored_narrow) {
    values_.pop_back();  // ops on halves round their results, which other passes may not
    made = must("cast", {{made}, {{"dtype", wanted.dtype}}});
    values_.back().exact = values_.back().steady = true;
    all_known_[made] = values_.back();
  }
  if (is_floating(wanted.dtype) && numbers.low >= 0.25) all_known_[made].positive = true;
  return made;
}

Shape Drawer::any_shape() {
  const std::int64_t rank = random.pick({0, 1, 1, 2, 2, 2, 3, 3, 4, 5});
  Shape made;
  for (std::int64_t i = 0; i < rank; ++i) {
    made.push_back(size());
    if (count_of(made) > most_elements_) made[made.size() - 1] = 1;
  }
  return made;
}

std::int64_t Drawer::axis_of(Ref x) {
  const auto rank = static_cast<std::int64_t>(shape(x).size());
  return rank == 0 ? 0 : random.between(-rank, rank - 1);
}

}  // namespace xtape::fuzz
