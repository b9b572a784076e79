// Matches a term of a pattern with a term of a tape. Operands of sums, products and contractions match in any order.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "rewrite/pattern.hpp"

namespace xtape {

namespace {
using Parts = Term::Parts;

/// The rest of the match, as a function. The function must outlive the call that receives it.
class Next {
 public:
  template <class Rest>
  Next(const Rest& rest)  // NOLINT: converts by intent
      : rest_(&rest), call_([](const void* self) { return (*static_cast<const Rest*>(self))(); }) {}
  bool operator()() const { return call_(rest_); }

 private:
  const void* rest_;
  bool (*call_)(const void*);
};

/// A backtracking search with one binding. If a branch fails, the search undoes what the branch has bound.
class Matcher {
 public:
  Matcher(const RulePattern& pattern, CanonicalForm& form, std::int32_t region, bool near, Binding& binding)
      : pattern_(pattern), form_(form), region_(region), near_(near), binding_(binding) {
    binding_.inputs.assign(pattern.inputs.size(), -1);
    binding_.attributes.assign(pattern.rule.attributes.items().size(), std::nullopt);
    binding_.miss.clear();
  }

  /// Returns whether the pattern's term `wanted` matches the term `found` and `next` matches the rest.
  bool term(TermId wanted, TermId found, const Next& next) {
    if (const auto input = pattern_.input_of(wanted)) return bind(*input, found, next);
    const Term& sought = pattern_.terms[wanted];
    const TermId inner_id = form_.inside(found, region_);
    const Term& inner = form_.terms[inner_id];
    const std::size_t before = bound_.size();
    switch (sought.kind) {
      case Term::Kind::number:
        return (inner.kind == Term::Kind::number && literal(sought.number, inner.number, inner.type.dtype) && next()) ||
               undo(before);
      case Term::Kind::sum:
        return inner.kind == Term::Kind::sum && parts_or_inside(sought, inner, next);
      case Term::Kind::product: {
        if (inner.kind == Term::Kind::product) return parts_or_inside(sought, inner, next);
        Term product{.kind = Term::Kind::product, .number = 1, .parts = {{found, 1}}, .type = inner.type};
        return parts_or_inside(sought, product, next);
      }
      case Term::Kind::contraction:
        return contraction(wanted, inner_id, next);
      case Term::Kind::transposed:
        return inner.kind == Term::Kind::transposed && inner.text == sought.text &&
               term(sought.parts[0].term, inner.parts[0].term, next);
      case Term::Kind::call:
        return call(sought, inner, next);
      // a pattern has a reshape only at its root, where the op's shape rule determines the shape
      case Term::Kind::reshaped:
        return wanted == pattern_.root && inner.kind == Term::Kind::reshaped &&
               term(sought.parts[0].term, inner.parts[0].term, next);
      default:
        return false;
    }
  }

 private:
  static constexpr int miss = -1;  // marks a near miss in `bound_`

  bool bind(std::size_t input, TermId found, const Next& next) {
    TermId& bound = binding_.inputs[input];
    if (bound >= 0) return form_.inside(bound, region_) == form_.inside(found, region_) && next();
    const std::size_t before = bound_.size();
    bound = found;
    bound_.push_back(static_cast<int>(input));
    return next() || undo(before);
  }

  bool set_attribute(std::size_t attribute, const Attribute& value) {
    std::optional<Attribute>& bound = binding_.attributes[attribute];
    if (bound) return *bound == value;
    bound = value;
    bound_.push_back(static_cast<int>(binding_.inputs.size() + attribute));
    return true;
  }

  bool literal(double sought, double found, Dtype dtype) {
    if (const auto attribute = pattern_.attribute_of(sought)) return set_attribute(*attribute, found);
    if (form_.close(sought, found, dtype)) return true;
    return missed(
        [&] { return "it has " + to_string(Literal(found)) + " where the rule has " + to_string(Literal(sought)); });
  }

  /// If the match searches near misses and this is its first mismatch, records the mismatch and returns true. Otherwise
  /// returns false.
  template <class Why>
  bool missed(const Why& why) {
    if (!near_ || !binding_.miss.empty()) return false;
    binding_.miss = why();
    bound_.push_back(miss);
    return true;
  }

  /// Undoes all bindings after the first `before` ones. Returns false.
  bool undo(std::size_t before) {
    for (; bound_.size() > before; bound_.pop_back()) {
      const int last = bound_.back();
      const auto inputs = static_cast<int>(binding_.inputs.size());
      if (last == miss)
        binding_.miss.clear();
      else if (last < inputs)
        binding_.inputs[last] = -1;
      else
        binding_.attributes[last - inputs].reset();
    }
    return false;
  }

  /// Matches the literal and the parts of a sum or a product.
  bool parts(const Term& sought, const Term& found, const Next& next) {
    const std::size_t before = bound_.size();
    return (found.parts.size() == sought.parts.size() && literal(sought.number, found.number, found.type.dtype) &&
            in_any_order(ordered(sought.parts), found.parts, sought.kind == Term::Kind::sum, found.type.dtype, next)) ||
           undo(before);
  }

  /// Like `parts`, but also expands operands that have several uses: first all of them together, then each of them
  /// alone.
  bool parts_or_inside(const Term& sought, const Term& found, const Next& next) {
    if (parts(sought, found, next)) return true;
    std::vector<TermId> merged;
    for (const Term::Part& part : found.parts)
      if (can_be_written_out(form_.terms[form_.inside(part.term, region_)], part.factor, found))
        merged.push_back(part.term);
    if (merged.size() > 1 && parts(sought, looked_through(found, merged), next)) return true;
    return std::any_of(merged.begin(), merged.end(),
                       [&](TermId one) { return parts(sought, looked_through(found, {one}), next); });
  }

  /// Returns whether expanding an operand is valid for all values. Counterexamples: sqrt(x) ** 2 is not x, and (x + 1)
  /// - 1 rounds.
  static bool can_be_written_out(const Term& inner, double factor, const Term& whole) {
    if (inner.kind != whole.kind) return false;
    if (whole.kind == Term::Kind::sum) return factor * inner.number * whole.number >= 0;
    const auto is_whole = [](const Term::Part& part) { return part.factor == std::floor(part.factor); };
    return std::abs(factor) == 1 ||
           (factor == std::floor(factor) && std::all_of(inner.parts.begin(), inner.parts.end(), is_whole));
  }

  /// Expands the chosen operands of a sum or product. For example, (a * b) ** 2 becomes a ** 2 * b ** 2.
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

  /// Moves the rule's inputs to the end of the parts, because the other parts determine the inputs.
  Parts ordered(Parts parts) const {
    std::stable_partition(parts.begin(), parts.end(),
                          [&](const Term::Part& part) { return !pattern_.input_of(part.term); });
    return parts;
  }

  /// Tries every assignment of `found` to `sought`.
  bool in_any_order(const Parts& sought, const Parts& found, bool factors_are_literals, Dtype dtype, const Next& next) {
    std::vector<bool> used(found.size(), false);
    return assign(sought, found, 0, used, factors_are_literals, dtype, next);
  }

  bool assign(const Parts& sought, const Parts& found, std::size_t i, std::vector<bool>& used,
              bool factors_are_literals, Dtype dtype, const Next& next) {
    if (i == sought.size()) return next();
    for (std::size_t k = 0; k < found.size(); ++k) {
      const std::size_t before = bound_.size();
      if (used[k]) continue;
      used[k] = true;
      const auto rest = [&] { return assign(sought, found, i + 1, used, factors_are_literals, dtype, next); };
      if ((factors_are_literals ? literal(sought[i].factor, found[k].factor, dtype)
                                : sought[i].factor == found[k].factor) &&
          term(sought[i].term, found[k].term, rest))
        return true;
      used[k] = false;
      undo(before);
    }
    return false;
  }

  bool call(const Term& sought, const Term& found, const Next& next) {
    if (found.kind != Term::Kind::call || found.op != sought.op || found.output != sought.output ||
        found.parts.size() != sought.parts.size())
      return false;
    const std::size_t before = bound_.size();
    return (attributes(sought, found) && operands(sought.parts, found.parts, 0, next)) || undo(before);
  }

  /// Returns whether the attributes and the random draws of two calls match.
  bool attributes(const Term& sought, const Term& found) {
    for (const auto& [name, value] : sought.attributes.items()) {
      const Attribute* other = found.attributes.find(name);
      if (other == nullptr || !attribute(*found.op, name, value, *other, found.type.dtype)) return false;
    }
    if (sought.draws == 0) return true;
    const auto key = pattern_.attribute_of(static_cast<std::int64_t>(sought.draws));
    return key && set_attribute(*key, static_cast<std::int64_t>(found.draws));
  }

  bool attribute(const Op& op, const std::string& name, const Attribute& sought, const Attribute& found, Dtype dtype) {
    if (const auto hole = pattern_.attribute_of(sought))
      return sought.index() == found.index() && set_attribute(*hole, found);
    if (sought == found) return true;
    const auto* a = std::get_if<double>(&sought);
    const auto* b = std::get_if<double>(&found);
    return a != nullptr && b != nullptr && (form_.close(*a, *b, dtype) || missed([&] {
                                              return op.name + "'s " + name + " is not " + to_string(sought);
                                            }));
  }

  bool operands(const Parts& sought, const Parts& found, std::size_t i, const Next& next) {
    if (i == sought.size()) return next();
    return term(sought[i].term, found[i].term, [&] { return operands(sought, found, i + 1, next); });
  }

  bool contraction(TermId wanted, TermId found, const Next& next) {
    const Term::Part part = form_.terms.split(found);
    const Term* product = &form_.terms[part.term];
    if (product->kind == Term::Kind::product && product->number == 1 && product->parts.size() == 1 &&
        product->parts[0].factor == 1)
      product = &form_.terms[product->parts[0].term];
    const Term& whole = *product;
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
      const std::size_t before = bound_.size();
      const bool fits = known == pattern_.equations.end() ? equation == sought.text
                                                          : set_attribute(known->second.attribute, equation);
      if (fits && with_factor(parts, operands_found, part.factor, next)) return true;
      undo(before);
    } while (std::next_permutation(order.begin(), order.end()));
    return false;
  }

  /// Matches operands if the contraction has a factor. The factor must belong to one operand, and the tape must have
  /// the value of factor times operand.
  bool with_factor(const Parts& sought, const Parts& found, double factor, const Next& next) {
    if (factor == 1) return operands(sought, found, 0, next);
    for (std::size_t i = 0; i < found.size(); ++i) {
      Parts with = found;
      with[i].term = form_.terms.scaled(found[i].term, factor);
      if (form_.value_of(with[i].term, region_) && operands(sought, with, 0, next)) return true;
    }
    return false;
  }

  /// Returns the equation with its operands in another order. Renames the axis labels in the order of their first use.
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
  Binding& binding_;
  std::vector<int> bound_;  // the bindings in their order: inputs, attributes (numbered after the inputs), `miss`
};
}  // namespace

bool match(const RulePattern& pattern, CanonicalForm& form, TermId found, std::int32_t region, bool near,
           Binding& binding, const std::function<bool()>& accept) {
  Matcher matcher(pattern, form, region, near, binding);
  return matcher.term(pattern.root, found, accept);
}

}  // namespace xtape
