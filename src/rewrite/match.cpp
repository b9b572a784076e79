// Matches a term of a pattern with a term of a tape, with operands of sums, products and contractions in any order.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "pattern.hpp"

namespace xtape {

namespace {
using Next = std::function<bool(const Binding&)>;
using Parts = std::vector<Term::Part>;

class Matcher {
 public:
  Matcher(const RulePattern& pattern, CanonicalForm& form, std::int32_t region, bool near)
      : pattern_(pattern), form_(form), region_(region), near_(near) {}

  /// Whether term `wanted` of the pattern matches term `found` with a binding that `next` accepts.
  bool term(TermId wanted, TermId found, const Binding& binding, const Next& next) {
    if (const auto input = pattern_.input_of(wanted)) return bind(*input, found, binding, next);
    const Term& sought = pattern_.terms[wanted];
    const TermId inner_id = form_.inside(found, region_);
    const Term inner = form_.terms[inner_id];
    switch (sought.kind) {
      case Term::Kind::number: {
        Binding now = binding;
        return inner.kind == Term::Kind::number && literal(sought.number, inner.number, inner.type.dtype, now) &&
               next(now);
      }
      case Term::Kind::sum:
        return inner.kind == Term::Kind::sum && parts_or_inside(sought, inner, binding, next);
      case Term::Kind::product: {
        Term product = inner;
        if (inner.kind != Term::Kind::product) {
          product.number = 1;
          product.parts = {{found, 1}};
        }
        return parts_or_inside(sought, product, binding, next);
      }
      case Term::Kind::contraction:
        return contraction(wanted, inner_id, binding, next);
      case Term::Kind::transposed:
        return inner.kind == Term::Kind::transposed && inner.text == sought.text &&
               term(sought.parts[0].term, inner.parts[0].term, binding, next);
      case Term::Kind::call:
        return call(sought, inner, binding, next);
      case Term::Kind::reshaped:  // a pattern has a reshape at its root only; the op's shape rule gives the shape
        return wanted == pattern_.root && inner.kind == Term::Kind::reshaped &&
               term(sought.parts[0].term, inner.parts[0].term, binding, next);
      default:
        return false;
    }
  }

 private:
  bool bind(std::size_t input, TermId found, const Binding& binding, const Next& next) {
    const TermId bound = binding.inputs[input];
    if (bound >= 0) return form_.inside(bound, region_) == form_.inside(found, region_) && next(binding);
    Binding now = binding;
    now.inputs[input] = found;
    return next(now);
  }

  bool set_attribute(std::size_t attribute, const Attribute& value, Binding& binding) const {
    std::optional<Attribute>& bound = binding.attributes[attribute];
    if (bound) return *bound == value;
    bound = value;
    return true;
  }

  bool literal(double sought, double found, Dtype dtype, Binding& binding) const {
    if (const auto attribute = pattern_.attribute_of(sought)) return set_attribute(*attribute, found, binding);
    if (form_.close(sought, found, dtype)) return true;
    return missed(binding, [&] {
      return "it has " + to_string(Literal(found)) + " where the rule has " + to_string(Literal(sought));
    });
  }

  /// Whether this mismatch is tolerated, as the only one of a near miss.
  template <class Why>
  bool missed(Binding& binding, const Why& why) const {
    if (!near_ || !binding.miss.empty()) return false;
    binding.miss = why();
    return true;
  }

  /// Matches the literal and the parts of a sum or a product.
  bool parts(const Term& sought, const Term& found, const Binding& binding, const Next& next) {
    Binding now = binding;
    return found.parts.size() == sought.parts.size() && literal(sought.number, found.number, found.type.dtype, now) &&
           in_any_order(ordered(sought.parts), found.parts, sought.kind == Term::Kind::sum, found.type.dtype, now,
                        next);
  }

  /// As `parts`; also tries the parts with one or all of the operands expanded that have several uses.
  bool parts_or_inside(const Term& sought, const Term& found, const Binding& binding, const Next& next) {
    if (parts(sought, found, binding, next)) return true;
    std::vector<TermId> merged;
    for (const Term::Part& part : found.parts)
      if (can_be_written_out(form_.terms[form_.inside(part.term, region_)], part.factor, found))
        merged.push_back(part.term);
    if (merged.size() > 1 && parts(sought, looked_through(found, merged), binding, next)) return true;
    return std::any_of(merged.begin(), merged.end(),
                       [&](TermId one) { return parts(sought, looked_through(found, {one}), binding, next); });
  }

  /// Whether expanding an operand is valid for all values: sqrt(x) ** 2 is not x, and (x + 1) - 1 rounds.
  static bool can_be_written_out(const Term& inner, double factor, const Term& whole) {
    if (inner.kind != whole.kind) return false;
    if (whole.kind == Term::Kind::sum) return factor * inner.number * whole.number >= 0;
    const auto is_whole = [](const Term::Part& part) { return part.factor == std::floor(part.factor); };
    return std::abs(factor) == 1 ||
           (factor == std::floor(factor) && std::all_of(inner.parts.begin(), inner.parts.end(), is_whole));
  }

  /// A sum or product with some of its operands expanded: (a * b) ** 2 as a ** 2 * b ** 2.
  Term looked_through(const Term& whole, const std::vector<TermId>& which) const {
    Term result = whole;
    result.parts.clear();
    for (const Term::Part& part : whole.parts) {
      const Term& inner = form_.terms[form_.inside(part.term, region_)];
      if (std::find(which.begin(), which.end(), part.term) == which.end()) {
        result.parts.push_back(part);
        continue;
      }
      for (const Term::Part& each : inner.parts) result.parts.push_back({each.term, each.factor * part.factor});
      if (whole.kind == Term::Kind::sum)
        result.number += part.factor * inner.number;
      else
        result.number *= std::pow(inner.number, part.factor);
    }
    return result;
  }

  /// The parts with the rule's inputs last, because the other parts determine the inputs.
  Parts ordered(Parts parts) const {
    std::stable_partition(parts.begin(), parts.end(),
                          [&](const Term::Part& part) { return !pattern_.input_of(part.term); });
    return parts;
  }

  /// Tries every assignment of `found` to `sought`.
  bool in_any_order(const Parts& sought, const Parts& found, bool factors_are_literals, Dtype dtype,
                    const Binding& binding, const Next& next) {
    std::vector<bool> used(found.size(), false);
    const std::function<bool(std::size_t, const Binding&)> from = [&](std::size_t i, const Binding& so_far) {
      if (i == sought.size()) return next(so_far);
      for (std::size_t k = 0; k < found.size(); ++k) {
        Binding now = so_far;
        if (used[k] || !(factors_are_literals ? literal(sought[i].factor, found[k].factor, dtype, now)
                                              : sought[i].factor == found[k].factor))
          continue;
        used[k] = true;
        if (term(sought[i].term, found[k].term, now, [&](const Binding& bound) { return from(i + 1, bound); }))
          return true;
        used[k] = false;
      }
      return false;
    };
    return from(0, binding);
  }

  bool call(const Term& sought, const Term& found, const Binding& binding, const Next& next) {
    if (found.kind != Term::Kind::call || found.op != sought.op || found.output != sought.output ||
        found.parts.size() != sought.parts.size())
      return false;
    Binding now = binding;
    for (const auto& [name, value] : sought.attributes.items()) {
      const Attribute* other = found.attributes.find(name);
      if (other == nullptr || !attribute(*found.op, name, value, *other, found.type.dtype, now)) return false;
    }
    if (sought.draws != 0) {
      const auto key = pattern_.attribute_of(static_cast<std::int64_t>(sought.draws));
      if (!key || !set_attribute(*key, static_cast<std::int64_t>(found.draws), now)) return false;
    }
    return operands(sought.parts, found.parts, 0, now, next);
  }

  bool attribute(const Op& op, const std::string& name, const Attribute& sought, const Attribute& found, Dtype dtype,
                 Binding& binding) const {
    if (const auto hole = pattern_.attribute_of(sought))
      return sought.index() == found.index() && set_attribute(*hole, found, binding);
    if (sought == found) return true;
    const auto* a = std::get_if<double>(&sought);
    const auto* b = std::get_if<double>(&found);
    return a != nullptr && b != nullptr && (form_.close(*a, *b, dtype) || missed(binding, [&] {
                                              return op.name + "'s " + name + " is not " + to_string(sought);
                                            }));
  }

  bool operands(const Parts& sought, const Parts& found, std::size_t i, const Binding& binding, const Next& next) {
    if (i == sought.size()) return next(binding);
    return term(sought[i].term, found[i].term, binding,
                [&](const Binding& now) { return operands(sought, found, i + 1, now, next); });
  }

  bool contraction(TermId wanted, TermId found, const Binding& binding, const Next& next) {
    const Term::Part part = form_.terms.split(found);
    const Term inner = form_.terms[part.term];
    const Term* product = &inner;
    if (inner.kind == Term::Kind::product && inner.number == 1 && inner.parts.size() == 1 && inner.parts[0].factor == 1)
      product = &form_.terms[inner.parts[0].term];
    const Term whole = *product;
    const Term& sought = pattern_.terms[wanted];
    if (whole.kind != Term::Kind::contraction || whole.parts.size() != sought.parts.size()) return false;
    const auto known = pattern_.equations.find(wanted);
    Parts parts = sought.parts;
    if (known != pattern_.equations.end())
      for (std::size_t i = 0; i < parts.size(); ++i) parts[i] = {known->second.operands[i]};
    std::vector<std::size_t> order(parts.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    do {
      const std::string equation = reordered(whole.text, order);
      Parts operands_found;
      for (const std::size_t i : order) operands_found.push_back(whole.parts[i]);
      Binding now = binding;
      const bool fits = known == pattern_.equations.end() ? equation == sought.text
                                                          : set_attribute(known->second.attribute, equation, now);
      if (fits && with_factor(parts, operands_found, part.factor, now, next)) return true;
    } while (std::next_permutation(order.begin(), order.end()));
    return false;
  }

  /// Matches operands if the contraction has a factor: the factor must belong to one operand, and that multiple of the
  /// operand must be a value of the tape.
  bool with_factor(const Parts& sought, const Parts& found, double factor, const Binding& binding, const Next& next) {
    if (factor == 1) return operands(sought, found, 0, binding, next);
    for (std::size_t i = 0; i < found.size(); ++i) {
      Parts with = found;
      with[i].term = form_.terms.scaled(found[i].term, factor);
      if (form_.value_of(with[i].term, region_) && operands(sought, with, 0, binding, next)) return true;
    }
    return false;
  }

  /// The equation with its operands in another order, and its axis labels renamed in the order of their first use.
  static std::string reordered(const std::string& equation, const std::vector<std::size_t>& order) {
    std::vector<std::string> operands;
    const std::size_t arrow = equation.find('-');
    for (std::size_t begin = 0; begin <= arrow;) {
      const std::size_t end = std::min(equation.find(',', begin), arrow);
      operands.push_back(equation.substr(begin, end - begin));
      begin = end + 1;
    }
    std::string text = operands[order[0]];
    for (std::size_t i = 1; i < order.size(); ++i) text += "," + operands[order[i]];
    return with_letters_in_order(text + equation.substr(arrow));
  }

  const RulePattern& pattern_;
  CanonicalForm& form_;
  std::int32_t region_;
  bool near_;
};
}  // namespace

bool match(const RulePattern& pattern, CanonicalForm& form, TermId found, std::int32_t region, bool near,
           const std::function<bool(const Binding&)>& accept) {
  Binding binding;
  binding.inputs.assign(pattern.inputs.size(), -1);
  binding.attributes.resize(pattern.rule.attributes.items().size());
  return Matcher(pattern, form, region, near).term(pattern.root, found, binding, accept);
}

}  // namespace xtape
