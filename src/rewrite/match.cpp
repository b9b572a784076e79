// Matches a term of a pattern with a term of a tape. Operands of sums, products and contractions match in any order.
#include <algorithm>
#include <cmath>
#include <limits>

#include "rewrite/pattern.hpp"

namespace xtape {

namespace {
using Parts = Term::Parts;
using Next = std::function<bool()>;  // the rest of the match

/// Returns whether two literals count as equal: they differ by at most four units in the last place of the dtype.
bool are_close(double a, double b, Dtype dtype) {
  if (a == b || std::isinf(a) || std::isinf(b)) return a == b;
  const double epsilon =
      dtype == Dtype::float32 ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
  return std::abs(a - b) <= 4 * epsilon * std::max(std::abs(a), std::abs(b));
}

/// Returns the equation with its operands in another order. Renames the axis labels in the order of their first use.
std::string reordered(const std::string& equation, const SmallVector<std::size_t, 4>& order) {
  std::vector<std::string> operands;
  const std::size_t arrow = equation.find('-');
  for (std::size_t begin = 0; begin <= arrow;) {
    const std::size_t end = std::min(equation.find(',', begin), arrow);
    operands.push_back(equation.substr(begin, end - begin));
    begin = end + 1;
  }
  std::string text;
  for (const std::size_t i : order) text += (text.empty() ? "" : ",") + operands[i];
  return with_letters_in_order(text + equation.substr(arrow));
}

/// Returns whether expanding an operand of a sum or product is valid for all values. Counterexamples: sqrt(x) ** 2 is
/// not x, and (x + 1) - 1 rounds.
bool can_be_written_out(const Term& inner, double factor, const Term& whole) {
  if (inner.kind != whole.kind) return false;
  if (whole.kind == Term::Kind::sum) return factor * inner.number * whole.number >= 0;
  const auto is_whole = [](const Term::Part& part) { return part.factor == std::floor(part.factor); };
  return std::abs(factor) == 1 ||
         (is_whole({-1, factor}) && std::all_of(inner.parts.begin(), inner.parts.end(), is_whole));
}

/// A backtracking search with one binding. If a branch fails, the search undoes what the branch has bound.
class Matcher {
 public:
  Matcher(const RulePattern& pattern, CanonicalForm& form, bool may_miss, Binding& binding)
      : pattern_(pattern), form_(form), may_miss_(may_miss), binding_(binding) {
    binding_.inputs.assign(pattern.inputs.size(), -1);
    binding_.attributes.assign(pattern.rule.attributes.items().size(), std::nullopt);
    binding_.miss.clear();
  }

  /// Returns whether the pattern's term `wanted` matches the term `found` and `next` matches the rest.
  bool term(TermId wanted, TermId found, const Next& next) {
    if (const auto input = pattern_.input_of(wanted)) return bind(*input, found, next);
    const Term& sought = pattern_.terms[wanted];
    const Term& inner = inside(found);
    if (sought.op == &term_ops().einsum) return contraction(wanted, found, next);
    if (sought.kind == Term::Kind::product && inner.kind != Term::Kind::product) {
      // the term as a product of itself
      const Term product{.kind = Term::Kind::product, .number = 1, .parts = {{found}}, .type = inner.type};
      return sought.parts.size() == 1 && parts(wanted, product, next);
    }
    if (sought.kind != inner.kind || sought.op != inner.op) return false;
    const std::size_t before = bound_.size();
    if (sought.kind == Term::Kind::call)
      return (attributes(wanted, inner) && operands(sought.parts, inner.parts, inner, 0, next)) || undo(before);
    if (sought.kind == Term::Kind::number)
      return (literal(sought.number, inner.number, inner.type.dtype) && next()) || undo(before);
    return sought.kind != Term::Kind::value && parts_or_inside(wanted, inner, next);
  }

 private:
  static constexpr int miss = -1;  // marks a miss in `bound_`

  const Term& inside(TermId id) const { return form_.terms[form_.terms.inside(id)]; }

  bool bind(std::size_t input, TermId found, const Next& next) {
    TermId& bound = binding_.inputs[input];
    if (bound >= 0) {
      const Term &first = inside(bound), &second = inside(found);
      return (&first == &second || form_.same(first.value, second.value)) && next();
    }
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
    return are_close(sought, found, dtype) || missed([&] {
             return "it has " + to_string(Literal(found)) + " where the rule has " + to_string(Literal(sought));
           });
  }

  /// If a literal may differ and this is the first that does, records it and returns true. Otherwise returns false.
  template <class Why>
  bool missed(const Why& why) {
    if (!may_miss_ || !binding_.miss.empty()) return false;
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
  bool parts(TermId wanted, const Term& found, const Next& next) {
    const Term& sought = pattern_.terms[wanted];
    const std::size_t before = bound_.size();
    return (found.parts.size() == sought.parts.size() && literal(sought.number, found.number, found.type.dtype) &&
            in_any_order(found.parts,
                         [&](const Parts& given, const auto& /*order*/) {
                           return operands(pattern_.parts[wanted], given, found, 0, next);
                         })) ||
           undo(before);
  }

  /// Like `parts`, but also expands operands that have several uses: first all of them together, then each of them
  /// alone.
  bool parts_or_inside(TermId wanted, const Term& found, const Next& next) {
    if (parts(wanted, found, next)) return true;
    std::vector<TermId> merged;
    for (const Term::Part& part : found.parts)
      if (can_be_written_out(inside(part.term), part.factor, found)) merged.push_back(part.term);
    if (merged.size() > 1 && parts(wanted, looked_through(found, merged), next)) return true;
    return std::any_of(merged.begin(), merged.end(),
                       [&](TermId one) { return parts(wanted, looked_through(found, {one}), next); });
  }

  /// Expands the chosen operands of a sum or product. For example, (a * b) ** 2 becomes a ** 2 * b ** 2.
  Term looked_through(const Term& whole, const std::vector<TermId>& which) const {
    Term result{.kind = whole.kind, .number = whole.number, .type = whole.type};
    for (const Term::Part& part : whole.parts)
      if (std::find(which.begin(), which.end(), part.term) == which.end())
        result.parts.push_back(part);
      else
        form_.terms.flatten(result, inside(part.term), part.factor, false);
    return result;
  }

  /// Returns whether the outputs, the attributes and the random draws of two calls of an op match. The shape rule of
  /// the rule's op determines the shape of a reshape at the root.
  bool attributes(TermId wanted, const Term& found) {
    const Term& sought = pattern_.terms[wanted];
    if (sought.op == &term_ops().reshape) return wanted == pattern_.root;
    if (sought.output != found.output || sought.parts.size() != found.parts.size() || sought.text != found.text)
      return false;
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
    return a != nullptr && b != nullptr && (are_close(*a, *b, dtype) || missed([&] {
                                              return op.name + "'s " + name + " is not " + to_string(sought);
                                            }));
  }

  /// Matches the operands of `whole` in the given order, from operand `i` on.
  bool operands(const Parts& sought, const Parts& given, const Term& whole, std::size_t i, const Next& next) {
    if (i == sought.size()) return next();
    const std::size_t before = bound_.size();
    const bool fits = whole.kind == Term::Kind::sum ? literal(sought[i].factor, given[i].factor, whole.type.dtype)
                                                    : sought[i].factor == given[i].factor;
    const auto rest = [&] { return operands(sought, given, whole, i + 1, next); };
    return (fits && term(sought[i].term, given[i].term, rest)) || undo(before);
  }

  /// Calls fits(parts, order) for each order of the parts, until it returns true.
  template <class Fits>
  static bool in_any_order(const Parts& parts, const Fits& fits) {
    SmallVector<std::size_t, 4> order;
    for (std::size_t i = 0; i < parts.size(); ++i) order.push_back(i);
    do {
      Parts given;
      for (const std::size_t i : order) given.push_back(parts[i]);
      if (fits(given, order)) return true;
    } while (std::next_permutation(order.begin(), order.end()));
    return false;
  }

  bool contraction(TermId wanted, TermId found, const Next& next) {
    const Term::Part part = form_.terms.split(form_.terms.inside(found));
    const Term& whole = form_.terms[part.term];
    const Term& sought = pattern_.terms[wanted];
    if (whole.op != sought.op || whole.parts.size() != sought.parts.size()) return false;
    const auto hole = pattern_.attribute_of(sought.text);
    return in_any_order(whole.parts, [&](const Parts& given, const auto& order) {
      const auto equation = [&] {
        const std::string text = reordered(whole.text, order);
        const std::size_t before = bound_.size();
        return ((hole ? set_attribute(*hole, text) : text == sought.text) && next()) || undo(before);
      };
      if (part.factor == 1) return operands(sought.parts, given, whole, 0, equation);
      // The factor must belong to one operand, and the tape must have the value of factor times operand.
      for (std::size_t i = 0; i < given.size(); ++i) {
        Parts with = given;
        with[i].term = multiple(given[i].term, part.factor);
        if (with[i].term >= 0 && operands(sought.parts, with, whole, 0, equation)) return true;
      }
      return false;
    });
  }

  /// Returns the term of a value that is factor * operand, or -1.
  TermId multiple(TermId operand, double factor) {
    for (TermId id = operand + 1; static_cast<std::size_t>(id) < form_.terms.size(); ++id)
      if (const Term& term = form_.terms[id];
          term.kind == Term::Kind::product && term.number == factor && term.rest == operand && term.value.node >= 0)
        return id;
    return -1;
  }

  const RulePattern& pattern_;
  CanonicalForm& form_;
  bool may_miss_;
  Binding& binding_;
  std::vector<int> bound_;  // the bindings in their order: inputs, attributes (numbered after the inputs), `miss`
};
}  // namespace

bool may_match(const RulePattern& pattern, const TermTable& terms, const Term& found) {
  const Term& root = pattern.terms[pattern.root];
  if (root.kind != found.kind || root.op != found.op || root.parts.size() != found.parts.size()) return false;
  return std::all_of(root.parts.begin(), root.parts.end(), [&](const Term::Part& wanted) {
    const Term& sought = pattern.terms[wanted.term];
    const bool may_differ = sought.kind == Term::Kind::product || sought.op == &term_ops().einsum;
    return may_differ || pattern.input_of(wanted.term) ||
           std::any_of(found.parts.begin(), found.parts.end(), [&](const Term::Part& part) {
             const Term& inner = terms[terms.inside(part.term)];
             const bool fits = inner.kind == sought.kind && inner.op == sought.op;
             return inner.kind == found.kind ||
                    (fits && (found.kind != Term::Kind::product || part.factor == wanted.factor));
           });
  });
}

bool match(const RulePattern& pattern, CanonicalForm& form, TermId found, bool may_miss, Binding& binding,
           const std::function<bool()>& accept) {
  return Matcher(pattern, form, may_miss, binding).term(pattern.root, found, accept);
}

}  // namespace xtape
