#include "rewrite/terms.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/table/kernels.hpp"

namespace xtape {

namespace {
/// Sums and products with more parts than this are not flattened, so that n nested sums take only O(n) time. No rule
/// has as many parts.
constexpr std::size_t most_parts = 8;

/// Returns whether a literal may move within an expression of this dtype. With larger or smaller literals, an
/// intermediate result could overflow or underflow in one order and not in the other.
bool is_moderate(double number, Dtype dtype) {
  const double size = std::abs(number);
  return dtype == Dtype::float32 ? size >= 0x1p-40 && size <= 0x1p40 : size >= 0x1p-400 && size <= 0x1p400;
}

bool is_whole(double number) {
  return number == std::floor(number) && std::abs(number) < 64;
}

/// Returns whether two factors of equal parts may be added: in a sum if nothing cancels, because x - x is not 0 if x is
/// infinite; in a product if that does not change the domain, because sqrt(x) * sqrt(x) is not x.
bool may_be_added(Term::Kind kind, double a, double b) {
  return (a > 0) == (b > 0) && (kind == Term::Kind::sum || (is_whole(a) && is_whole(b)));
}

std::size_t parts_of(const Term& term, Term::Kind kind) {
  return term.kind == kind ? term.parts.size() : 1;
}
}  // namespace

const TermOps& term_ops() {
  const auto op = [](const char* name) -> const Op& { return builtin_ops().at(name); };
  static const TermOps ops{op("broadcast_to"), op("einsum"),  op("logical_not"), op("masked_fill"),
                           op("mean"),         op("reshape"), op("transpose")};
  return ops;
}

std::string with_letters_in_order(std::string equation) {
  std::array<char, 256> renamed{};
  char next = 'a';
  for (char& letter : equation) {
    if (letter == ',' || letter == '-' || letter == '>') continue;
    char& name = renamed[static_cast<unsigned char>(letter)];
    if (name == '\0') {
      name = next;
      next = next == 'z' ? 'A' : static_cast<char>(next + 1);
    }
    letter = name;
  }
  return equation;
}

TermId TermTable::add(Term&& term) {
  if (std::find(ops_.begin(), ops_.end(), term.op) == ops_.end()) ops_.push_back(term.op);
  if (size_ % together == 0) blocks_.emplace_back().reserve(together);
  blocks_.back().push_back(std::move(term));
  return static_cast<TermId>(size_++);
}

TermId TermTable::call(const Op& op, const Attributes& attributes, const std::vector<TermId>& inputs,
                       const ValueType& type, std::int32_t output, std::uint64_t draws) {
  Term term{
      .kind = Term::Kind::call, .output = output, .op = &op, .draws = draws, .attributes = attributes, .type = type};
  for (const TermId input : inputs) term.parts.push_back({input});
  return add(std::move(term));
}

/// Returns whether two terms are equal as far as `depth` levels show. Equal calls that a program has recorded twice
/// have two terms.
bool TermTable::equal(TermId a, TermId b, int depth) const {
  if (a == b) return true;
  const Term &x = (*this)[a], &y = (*this)[b];
  const auto same_part = [&](const Term::Part& p, const Term::Part& q) {
    return p.factor == q.factor && equal(p.term, q.term, depth - 1);
  };
  return depth > 0 && x.kind == y.kind && x.kind > Term::Kind::number && x.op == y.op && x.number == y.number &&
         x.output == y.output && x.draws == y.draws && x.text == y.text && x.parts.size() == y.parts.size() &&
         x.attributes == y.attributes &&
         std::equal(x.parts.begin(), x.parts.end(), y.parts.begin(), y.parts.end(), same_part);
}

void TermTable::merge(Term& whole, const Term::Part& part) const {
  for (Term::Part& other : whole.parts)
    if (may_be_added(whole.kind, other.factor, part.factor) && equal(other.term, part.term)) {
      other.factor += part.factor;
      return;
    }
  whole.parts.push_back(part);
}

void TermTable::flatten(Term& whole, const Term& inner, double factor, bool merges) const {
  if (whole.kind == Term::Kind::sum)
    whole.number += factor * inner.number;
  else
    whole.number *= factor == 1 ? inner.number : kernels().numbers.pow(inner.number, factor);
  for (const Term::Part& part : inner.parts)
    if (const Term::Part added{part.term, factor * part.factor}; merges)
      merge(whole, added);
    else
      whole.parts.push_back(added);
}

/// Returns number * product of the parts. `rest` is the term of the product of the parts if there is one already.
TermId TermTable::product_of(double number, Term::Parts parts, const ValueType& type, TermId rest) {
  if (parts.empty()) return add({.kind = Term::Kind::number, .number = number, .type = type});
  if (rest < 0 && parts.size() == 1 && parts[0].factor == 1) rest = parts[0].term;
  if (rest >= 0 && (*this)[rest].type != type) rest = -1;
  if (number == 1 && rest >= 0) return rest;
  std::sort(parts.begin(), parts.end());
  return add({.kind = Term::Kind::product, .number = number, .parts = std::move(parts), .rest = rest, .type = type});
}

TermId TermTable::without_literal(TermId id) {
  Term& term = at(id);
  if (term.kind != Term::Kind::product || term.number == 1) return id;
  if (term.rest < 0) term.rest = product_of(1, term.parts, term.type);
  return term.rest;
}

Term::Part TermTable::split(TermId id) {
  const Term& term = (*this)[id];
  const bool splits = term.kind == Term::Kind::product && is_moderate(term.number, term.type.dtype);
  return splits ? Term::Part{without_literal(id), term.number} : Term::Part{id, 1};
}

TermId TermTable::without_broadcast(TermId a, TermId other, const ValueType& type) const {
  const Term& term = (*this)[a];
  if (term.op != &term_ops().broadcast_to) return a;
  const TermId inner = term.parts[0].term;
  return broadcast_shapes({(*this)[inner].type.shape, (*this)[other].type.shape}) == type.shape ? inner : a;
}

TermId TermTable::sum(TermId a, double a_factor, TermId b, double b_factor, const ValueType& type) {
  a = without_broadcast(a, b, type);
  b = without_broadcast(b, a, type);
  Term::Part operands[] = {split(a), split(b)};
  operands[0].factor *= a_factor;
  operands[1].factor *= b_factor;
  const Term* inner[] = {&(*this)[operands[0].term], &(*this)[operands[1].term]};
  const auto literal_in = [&](int i) {
    const bool has = inner[i]->kind == Term::Kind::number || inner[i]->kind == Term::Kind::sum;
    return has ? operands[i].factor * inner[i]->number : 0;
  };
  // (x + c) - c rounds x, so literals that cancel are not merged.
  const bool flat = literal_in(0) * literal_in(1) >= 0 &&
                    parts_of(*inner[0], Term::Kind::sum) + parts_of(*inner[1], Term::Kind::sum) <= most_parts;
  Term result{.kind = Term::Kind::sum, .type = type};
  for (int i = 0; i < 2; ++i)
    if (inner[i]->kind == Term::Kind::number || (flat && inner[i]->kind == Term::Kind::sum))
      flatten(result, *inner[i], operands[i].factor);
    else
      merge(result, operands[i]);
  if (result.parts.empty()) return product_of(result.number, {}, type);
  std::sort(result.parts.begin(), result.parts.end());
  const auto moderate = [&](const Term::Part& part) { return is_moderate(part.factor, type.dtype); };
  if (!std::all_of(result.parts.begin(), result.parts.end(), moderate) ||
      (result.number != 0 && !is_moderate(result.number, type.dtype)))
    return add(std::move(result));
  const double lead = result.parts[0].factor;
  for (Term::Part& part : result.parts) part.factor /= lead;
  result.number /= lead;
  const bool is_multiple = result.parts.size() == 1 && result.number == 0;
  return product_of(lead, {{is_multiple ? result.parts[0].term : add(std::move(result))}}, type);
}

TermId TermTable::product(TermId a, TermId b, const ValueType& type) {
  a = without_broadcast(a, b, type);
  b = without_broadcast(b, a, type);
  const Term &x = (*this)[a], &y = (*this)[b];
  const auto literal_in = [](const Term& term) {
    return term.kind == Term::Kind::number || term.kind == Term::Kind::product ? term.number : 1;
  };
  const double first = literal_in(x), second = literal_in(y);
  if (first != 1 && second != 1 && !(is_moderate(first, type.dtype) && is_moderate(second, type.dtype)))
    return product_of(1, {{a}, {b}}, type);
  const bool flat = parts_of(x, Term::Kind::product) + parts_of(y, Term::Kind::product) <= most_parts;
  Term result{.kind = Term::Kind::product, .number = 1, .type = type};
  for (const TermId id : {a, b})
    if (const Term& factor = (*this)[id];
        factor.kind == Term::Kind::number || (flat && factor.kind == Term::Kind::product))
      flatten(result, factor, 1);
    else
      merge(result, {id});
  const TermId rest = x.kind == Term::Kind::number ? b : y.kind == Term::Kind::number ? a : -1;
  return product_of(result.number, std::move(result.parts), type, rest < 0 ? rest : without_literal(rest));
}

TermId TermTable::power(TermId a, double exponent) {
  const Term& base = (*this)[a];
  const bool moderate = base.number == 1 || is_moderate(base.number, base.type.dtype);
  if (base.kind == Term::Kind::number) return product_of(kernels().numbers.pow(base.number, exponent), {}, base.type);
  if (base.kind != Term::Kind::product || !moderate) return product_of(1, {{a, exponent}}, base.type);
  const auto multiplies = [&](const Term::Part& part) {
    return (is_whole(exponent) && is_whole(part.factor)) || exponent == -1 ||
           (part.factor == -1 && base.parts.size() == 1);
  };
  if (std::all_of(base.parts.begin(), base.parts.end(), multiplies) && (is_whole(exponent) || base.number > 0)) {
    Term result{.kind = Term::Kind::product, .number = 1, .type = base.type};
    flatten(result, base, exponent);
    return product_of(result.number, std::move(result.parts), base.type);
  }
  if (!(base.number > 0)) return product_of(1, {{a, exponent}}, base.type);
  return product_of(kernels().numbers.pow(base.number, exponent), {{without_literal(a), exponent}}, base.type);
}

TermId TermTable::scaled(TermId a, double factor) {
  const Term& term = (*this)[a];
  if (term.kind == Term::Kind::number) return product_of(term.number * factor, {}, term.type);
  if (term.kind != Term::Kind::product) return product_of(factor, {{a}}, term.type);
  return product_of(term.number * factor, term.parts, term.type, without_literal(a));
}

TermId TermTable::contraction(const std::vector<TermId>& operands, const std::string& equation, const ValueType& type) {
  Term whole{.kind = Term::Kind::call, .op = &term_ops().einsum, .type = type};
  double number = 1;
  std::size_t begin = 0;
  for (const TermId operand : operands) {
    const std::size_t end = equation.find_first_of(",-", begin);
    std::string letters = equation.substr(begin, end - begin);
    begin = end + 1;
    Term::Part part = split(operand);
    number *= part.factor;
    for (const Term* inner = &(*this)[part.term]; inner->op == &term_ops().transpose; inner = &(*this)[part.term]) {
      std::string of_inner = letters;
      for (std::size_t i = 0; i < letters.size(); ++i) of_inner[inner->text[i]] = letters[i];
      letters = of_inner;
      part.term = inner->parts[0].term;
    }
    whole.text += (whole.parts.empty() ? "" : ",") + letters;
    whole.parts.push_back({part.term});
  }
  whole.text = with_letters_in_order(whole.text + equation.substr(equation.find('-')));
  return product_of(number, {{add(std::move(whole))}}, type);
}

TermId TermTable::reshaped(TermId a, const ValueType& type) {
  const Op& reshape = term_ops().reshape;
  auto [inner, factor] = split(a);
  while ((*this)[inner].op == &reshape) inner = (*this)[inner].parts[0].term;
  const Term& from = (*this)[inner];
  if (from.type == type) return scaled(inner, factor);
  if (from.kind == Term::Kind::number) return product_of(from.number * factor, {}, type);
  return scaled(
      call(reshape, {{"shape", std::vector<std::int64_t>(type.shape.begin(), type.shape.end())}}, {inner}, type),
      factor);
}

TermId TermTable::transposed(TermId a, std::string axes, const ValueType& type) {
  const auto [inner, factor] = split(a);
  const Term& from = (*this)[inner];
  if (from.op == &term_ops().einsum) {
    const std::size_t arrow = from.text.find('>') + 1;
    std::string equation = from.text.substr(0, arrow);
    for (const char axis : axes) equation += from.text[arrow + static_cast<std::size_t>(axis)];
    std::vector<TermId> operands;
    for (const Term::Part& each : from.parts) operands.push_back(each.term);
    return scaled(contraction(operands, equation, type), factor);
  }
  const bool again = from.op == &term_ops().transpose;
  if (again)
    for (char& axis : axes) axis = from.text[static_cast<std::size_t>(axis)];
  const TermId source = again ? from.parts[0].term : inner;
  if (std::is_sorted(axes.begin(), axes.end())) return scaled(source, factor);
  Term term{.kind = Term::Kind::call, .op = &term_ops().transpose, .text = std::move(axes), .type = type};
  term.parts.push_back({source});
  return scaled(add(std::move(term)), factor);
}

TermId TermTable::filled(TermId a, TermId mask, double value, const ValueType& type) {
  auto [inner, factor] = split(a);
  const double quotient = value / factor;  // a positive factor preserves the sign of infinities and 0
  if (!(factor > 0) || std::isinf(quotient) != std::isinf(value) || (quotient == 0) != (value == 0))
    return call(term_ops().masked_fill, {{"value", value}}, {a, mask}, type);
  return scaled(call(term_ops().masked_fill, {{"value", quotient}}, {inner, mask}, type), factor);
}

TermId TermTable::opposite(TermId mask) {
  const Term& term = (*this)[mask];
  const Op& negation = term_ops().logical_not;
  return term.op == &negation ? term.parts[0].term : call(negation, {}, {mask}, term.type);
}

}  // namespace xtape
