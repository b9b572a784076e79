#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "base/arrays/visit.hpp"
#include "base/messages/wording.hpp"
#include "inspect/failing.hpp"
#include "xtape/op/op.hpp"

namespace xtape {

namespace {
constexpr std::array not_finite{Kind::nan, Kind::inf, Kind::minus_inf};

/// A predicate of numbers. A judgement replaces the numbers for which the predicate is true by ones.
using Replaced = std::function<bool(double)>;

/// Returns the predicates for the judgements of a kind. Each predicate is true for numbers in operands that can explain
/// an element of this kind in an output. NaN can explain elements of all kinds.
std::vector<Replaced> explanations(Kind kind, Flips flips) {
  const auto same_kind = [kind](double number) { return kind_of(number) == kind || std::isnan(number); };
  if (kind == Kind::nan || flips == Flips::made) return {same_kind};
  return {same_kind, [](double number) { return !std::isfinite(number); }};
}

/// Returns the array with some elements replaced by ones. Returns the same handle if no element is replaced.
Array without(const Array& array, const Replaced& replaced) {
  Array changed(array);
  visit_floats(array, [&](const auto* elements) {
    using T = std::remove_cv_t<std::remove_pointer_t<decltype(elements)>>;
    const auto is_bad = [&](T element) { return replaced(static_cast<double>(element)); };
    if (std::none_of(elements, elements + array.count(), is_bad)) return;
    changed = array.clone();
    auto* copy = changed.template as<T>();
    std::replace_if(copy, copy + changed.count(), is_bad, static_cast<T>(1.0F));
  });
  return changed;
}

bool replace(Array& array, const Replaced& by_ones) {
  Array changed = without(array, by_ones);
  const bool differs = changed.data() != array.data();
  array = std::move(changed);
  return differs;
}

/// Replaces some literals of a call by ones: attributes and constants, also in its body. Returns whether there were
/// any.
bool replace_literals(Node& node, const Replaced& by_ones) {
  bool replaced = node.op == &constant_op() && replace(node.storage, by_ones);
  const Attributes attributes = node.attributes;
  for (const auto& [name, value] : attributes.items())
    if (const auto* number = std::get_if<double>(&value); number != nullptr && by_ones(*number)) {
      node.attributes.set(name, 1.0);
      replaced = true;
    }
  if (!node.body) return replaced;
  Tape body = node.body->blank();
  bool in_body = false;
  for (std::size_t i = 0; i < node.body->size(); ++i) {
    Node inner = node.body->node(i);
    inner.serial = 0;
    in_body |= replace_literals(inner, by_ones);
    body.append(std::move(inner));
  }
  body.set_results(node.body->results());
  if (in_body) node.body = std::make_shared<const Tape>(body);
  return replaced || in_body;
}
}  // namespace

const char* name_of(Kind kind) {
  constexpr std::array names{"finite", "NaN", "inf", "-inf"};
  return names[static_cast<std::size_t>(kind)];
}

Kind kind_of(double number) {
  if (std::isfinite(number)) return Kind::finite;
  if (std::isnan(number)) return Kind::nan;
  return number > 0 ? Kind::inf : Kind::minus_inf;
}

Kinds kinds_of(const std::vector<Array>& arrays) {
  Kinds kinds;
  for (const Array& array : arrays) {
    std::vector<Kind>& own = kinds.emplace_back();
    if (all_finite(array)) continue;
    visit_floats(array, [&](const auto* elements) {
      own.reserve(static_cast<std::size_t>(array.count()));
      for (std::int64_t i = 0; i < array.count(); ++i) own.push_back(kind_of(static_cast<double>(elements[i])));
    });
  }
  return kinds;
}

bool all_finite(const Kinds& kinds) {
  return std::ranges::all_of(kinds, [](const std::vector<Kind>& own) {
    return std::ranges::all_of(own, [](Kind kind) { return kind == Kind::finite; });
  });
}

std::optional<MarkedElement> worst_of(const Kinds& kinds) {
  for (const Kind kind : not_finite)
    for (std::size_t k = 0; k < kinds.size(); ++k) {
      const auto found = std::ranges::find(kinds[k], kind);
      if (found != kinds[k].end()) return MarkedElement{k, found - kinds[k].begin(), kind};
    }
  return std::nullopt;
}

Kinds made_by_call(const NodeByNode& plays, const Node& node, const std::vector<Array>& operands,
                   const std::vector<Array>& outputs, Flips flips) {
  Kinds made = kinds_of(outputs);
  for (const Kind kind : not_finite) {
    const auto has_kind = [&](const std::vector<Kind>& own) { return contains(own, kind); };
    for (const Replaced& by_ones : explanations(kind, flips)) {
      if (std::ranges::none_of(made, has_kind)) break;
      Node call = node;
      std::vector<Array> others = operands;
      bool replaced = replace_literals(call, by_ones);
      for (Array& operand : others) replaced |= replace(operand, by_ones);
      if (!replaced) continue;  // no operand or literal explains the elements of this kind
      Kinds still(outputs.size());
      try {
        still = kinds_of(plays.played_alone(call, others));
      } catch (const Error&) {  // the kernel does not accept ones, so the elements count as passed on
      }
      for (std::size_t k = 0; k < made.size(); ++k)
        for (std::size_t i = 0; i < made[k].size(); ++i)
          if (made[k][i] == kind && (still[k].empty() || still[k][i] != kind)) made[k][i] = Kind::finite;
    }
  }
  return made;
}

Kinds made_by_source(const Node& node, const Array& array) {
  Kinds made = kinds_of({Array(array)});
  const Range range = range_of(array);
  const bool one_sign = range.positive_infinities == 0 || range.negative_infinities == 0;
  const bool is_mask = range.zeros > 0 && range.zeros == range.finite() && range.nans == 0 && one_sign;
  if (node.op == &constant_op() || is_mask)
    for (Kind& kind : made[0])
      if (kind != Kind::nan) kind = Kind::finite;
  return made;
}

void mend(std::vector<Array>& arrays, const Kinds& marked) {
  for (std::size_t k = 0; k < arrays.size(); ++k) {
    if (marked[k].empty()) continue;
    arrays[k] = arrays[k].clone();
    visit_floats(arrays[k], [&](auto* elements) {
      using T = std::remove_pointer_t<decltype(elements)>;
      for (std::size_t i = 0; i < marked[k].size(); ++i)
        if (marked[k][i] != Kind::finite) elements[i] = static_cast<T>(1.0F);
    });
  }
}

}  // namespace xtape
