#include "xtape/op/terms.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/arrays/mix.hpp"
#include "xtape/op/op.hpp"

namespace xtape {

namespace {
/// Sums and products with more parts than this are not flattened, so that n nested sums take only O(n) time. No rule
/// has as many parts.
constexpr std::size_t most_parts = 8;
constexpr std::size_t most_near = 16;  // the number of places in the order of the tape that a search tries

std::size_t hash_of(const Attribute& value) {
  return std::visit(
      [](const auto& held) -> std::size_t {
        using T = std::decay_t<decltype(held)>;
        std::size_t hash = 0;
        if constexpr (std::is_same_v<T, std::vector<std::int64_t>>) {
          for (const std::int64_t each : held) mix(hash, static_cast<std::size_t>(each));
        } else if constexpr (std::is_same_v<T, NamedSizes>) {
          // the order of attributes does not matter
          for (const auto& each : held) hash += std::hash<std::string>()(each.name);
        } else if constexpr (std::is_same_v<T, Dtype>) {
          hash = static_cast<std::size_t>(held);
        } else {
          hash = std::hash<T>()(held);
        }
        return hash;
      },
      value);
}

}  // namespace

std::size_t hash_of(const Attributes& attributes) {
  std::size_t hash = 0;
  for (const auto& item : attributes.items()) mix(hash, hash_of(item.second));
  return hash;
}

namespace {
std::size_t hash_of(const Term& term) {
  std::size_t hash = static_cast<std::size_t>(term.kind);
  mix(hash, reinterpret_cast<std::uintptr_t>(term.op));
  const auto bits = [](double number) { return std::bit_cast<std::uint64_t>(number + 0.0); };  // + 0.0 turns -0 into 0
  mix(hash, bits(term.number));
  for (const Term::Part& part : term.parts) {
    mix(hash, static_cast<std::size_t>(part.term));
    mix(hash, bits(part.factor));
  }
  mix(hash, reinterpret_cast<std::uintptr_t>(&term.text));
  mix(hash, (static_cast<std::size_t>(static_cast<std::uint32_t>(term.value.node)) << 8) ^
                static_cast<std::size_t>(term.value.output) ^ (static_cast<std::size_t>(term.output) << 40));
  mix(hash, term.draws);
  mix(hash, hash_of(term.attributes));
  return hash;
}

bool same_bits(double a, double b) {
  return a == b || (a != a && b != b);
}

bool equal(const Term& a, const Term& b) {
  const auto same_part = [](const Term::Part& x, const Term::Part& y) {
    return x.term == y.term && x.factor == y.factor;
  };
  return a.kind == b.kind && a.op == b.op && same_bits(a.number, b.number) && a.value == b.value &&
         &a.text == &b.text && a.output == b.output && a.draws == b.draws && &a.type == &b.type &&
         std::equal(a.parts.begin(), a.parts.end(), b.parts.begin(), b.parts.end(), same_part) &&
         a.attributes == b.attributes;
}

/// Returns whether a literal may move within an expression of this dtype. With larger or smaller literals, an
/// intermediate result could overflow or underflow in one order and not in the other.
bool is_moderate(double number, Dtype dtype) {
  const double size = std::abs(number);
  return dtype == Dtype::float32 ? size >= 0x1p-40 && size <= 0x1p40 : size >= 0x1p-400 && size <= 0x1p400;
}

bool is_whole(double number) {
  return number == std::floor(number) && std::abs(number) < 64;
}

bool before(const Term::Part& a, const Term::Part& b) {
  return a.term != b.term ? a.term < b.term : a.factor < b.factor;
}

/// Multiplies a product by a part. Exponents of equal terms are added if that does not change the domain: x * x is
/// x ** 2, but sqrt(x) * sqrt(x) is not x.
void multiply_into(Term::Parts& parts, const Term::Part& part) {
  for (Term::Part& other : parts)
    if (other.term == part.term && is_whole(other.factor) && is_whole(part.factor) &&
        (other.factor > 0) == (part.factor > 0)) {
      other.factor += part.factor;
      return;
    }
  parts.push_back(part);
}

/// Adds a part to a sum. Coefficients of equal terms are added if nothing cancels: x - x is not 0 if x is infinite.
void add_into(Term::Parts& parts, const Term::Part& part) {
  for (Term::Part& other : parts)
    if (other.term == part.term && other.factor * part.factor > 0) {
      other.factor += part.factor;
      return;
    }
  parts.push_back(part);
}
}  // namespace

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

std::size_t TermTable::TypeHash::operator()(const ValueType& type) const {
  std::size_t hash = static_cast<std::size_t>(type.dtype);
  for (const std::int64_t size : type.shape) mix(hash, static_cast<std::size_t>(size));
  return hash;
}

TermId TermTable::intern(Term&& term) {
  if (places_.size() <= 2 * size_) make_room();
  const std::size_t whole = hash_of(term);
  const auto hash = static_cast<std::uint32_t>(whole ^ (whole >> 32));
  Place& place = place_of(term, hash);
  if (place.term >= 0) return place.term;
  if (term.op != nullptr && std::find(ops_.begin(), ops_.end(), term.op) == ops_.end()) ops_.push_back(term.op);
  if (size_ % together == 0) blocks_.emplace_back().reserve(together);
  blocks_.back().push_back(std::move(term));
  place = {hash, static_cast<TermId>(size_)};
  return static_cast<TermId>(size_++);
}

/// Returns the place of an equal term, or the free place for the term. The search begins at places that follow the
/// order of the tape, so that the terms of nearby nodes have nearby places.
TermTable::Place& TermTable::place_of(const Term& term, std::uint32_t hash) {
  std::int32_t latest = std::max(term.value.node, 0);
  for (const Term::Part& part : term.parts) latest = std::max(latest, part.term);
  const std::size_t near = 2 * static_cast<std::size_t>(latest);
  for (std::size_t tried = 0;; ++tried) {
    Place& place = places_[((tried < most_near ? near : hash) + tried) & (places_.size() - 1)];
    if (place.term < 0 || (place.hash == hash && equal((*this)[place.term], term))) return place;
  }
}

/// Doubles the size of the hash table.
void TermTable::make_room() {
  std::vector<Place> before(std::max<std::size_t>(64, 2 * places_.size()));
  before.swap(places_);
  for (const Place& place : before)
    if (place.term >= 0) place_of((*this)[place.term], place.hash) = place;
}

TermId TermTable::value(ValueId id, const ValueType& type) {
  return intern({.kind = Term::Kind::value, .value = id, .type = stored(type)});
}

TermId TermTable::number(double number, const ValueType& type) {
  return intern({.kind = Term::Kind::number, .number = number, .type = stored(type)});
}

TermId TermTable::call(const Op& op, const Attributes& attributes, const std::vector<TermId>& inputs,
                       const ValueType& type, std::int32_t output, std::uint64_t draws) {
  Term term{.kind = Term::Kind::call,
            .output = output,
            .op = &op,
            .draws = draws,
            .attributes = attributes,
            .type = stored(type)};
  term.parts.reserve(inputs.size());
  for (const TermId input : inputs) term.parts.push_back({input});
  return intern(std::move(term));
}

std::optional<double> TermTable::number_of(TermId id) const {
  if ((*this)[id].kind == Term::Kind::number) return (*this)[id].number;
  return std::nullopt;
}

TermId TermTable::product_of(double number, Term::Parts parts, const ValueType& type) {
  if (parts.empty()) return this->number(number, type);
  if (number == 1 && parts.size() == 1 && parts[0].factor == 1 && (*this)[parts[0].term].type == type)
    return parts[0].term;
  std::sort(parts.begin(), parts.end(), before);
  return intern({.kind = Term::Kind::product, .number = number, .parts = std::move(parts), .type = stored(type)});
}

Term::Part TermTable::split(TermId id) {
  const Term& term = (*this)[id];
  if (term.kind != Term::Kind::product || term.number == 1 || !is_moderate(term.number, term.type.dtype))
    return {id, 1};
  const double number = term.number;
  return {product_of(1, term.parts, term.type), number};
}

TermId TermTable::without_broadcast(TermId a, TermId other, const ValueType& type) const {
  const Term& term = (*this)[a];
  if (term.kind != Term::Kind::broadcast) return a;
  const TermId inner = term.parts[0].term;
  return broadcast_shapes({(*this)[inner].type.shape, (*this)[other].type.shape}) == type.shape ? inner : a;
}

TermId TermTable::sum(TermId a, double a_factor, TermId b, double b_factor, const ValueType& type) {
  a = without_broadcast(a, b, type);
  b = without_broadcast(b, a, type);
  Term result{.kind = Term::Kind::sum, .type = stored(type)};
  result.parts.reserve(2);
  Term::Part operands[] = {split(a), split(b)};
  operands[0].factor *= a_factor;
  operands[1].factor *= b_factor;
  const auto parts_of = [&](const Term::Part& operand) {
    const Term& inner = (*this)[operand.term];
    return inner.kind == Term::Kind::sum ? inner.parts.size() : 1;
  };
  const auto literal_in = [&](const Term::Part& operand) {
    const Term& inner = (*this)[operand.term];
    const bool has = inner.kind == Term::Kind::number || inner.kind == Term::Kind::sum;
    return has ? operand.factor * inner.number : 0;
  };
  // (x + c) - c rounds x, so literals that cancel are not merged.
  const bool cancels = literal_in(operands[0]) * literal_in(operands[1]) < 0;
  const bool flat = parts_of(operands[0]) + parts_of(operands[1]) <= most_parts && !cancels;
  for (const Term::Part& operand : operands) {
    const Term& inner = (*this)[operand.term];
    if (inner.kind == Term::Kind::number) {
      result.number += operand.factor * inner.number;
    } else if (inner.kind == Term::Kind::sum && flat) {
      result.number += operand.factor * inner.number;
      for (const Term::Part& part : inner.parts) add_into(result.parts, {part.term, operand.factor * part.factor});
    } else {
      add_into(result.parts, operand);
    }
  }
  if (result.parts.empty()) return number(result.number, type);
  std::sort(result.parts.begin(), result.parts.end(), before);
  const double lead = result.parts[0].factor;
  const auto moderate = [&](double number) { return is_moderate(number, type.dtype); };
  if (!moderate(lead) || (result.number != 0 && !moderate(result.number)) ||
      !std::all_of(result.parts.begin(), result.parts.end(), [&](const auto& part) { return moderate(part.factor); }))
    return intern(std::move(result));
  for (Term::Part& part : result.parts) part.factor /= lead;
  result.number /= lead;
  if (result.parts.size() == 1 && result.number == 0) return product_of(lead, {{result.parts[0].term, 1}}, type);
  const TermId whole = intern(std::move(result));
  return lead == 1 ? whole : product_of(lead, {{whole, 1}}, type);
}

TermId TermTable::product(TermId a, TermId b, const ValueType& type) {
  a = without_broadcast(a, b, type);
  b = without_broadcast(b, a, type);
  double number = 1;
  Term::Parts parts;
  parts.reserve(2);
  const auto parts_of = [&](TermId id) {
    return (*this)[id].kind == Term::Kind::product ? (*this)[id].parts.size() : 1;
  };
  const auto literal_in = [&](TermId id) {
    const Term& term = (*this)[id];
    return term.kind == Term::Kind::number || term.kind == Term::Kind::product ? term.number : 1;
  };
  const double first = literal_in(a), second = literal_in(b);
  const bool apart = first != 1 && second != 1 && !(is_moderate(first, type.dtype) && is_moderate(second, type.dtype));
  if (apart) return product_of(1, {{a, 1}, {b, 1}}, type);
  const bool flat = parts_of(a) + parts_of(b) <= most_parts;
  for (const TermId id : {a, b}) {
    const Term& factor = (*this)[id];
    if (factor.kind == Term::Kind::number) {
      number *= factor.number;
    } else if (factor.kind == Term::Kind::product && flat) {
      number *= factor.number;
      for (const Term::Part& part : factor.parts) multiply_into(parts, part);
    } else {
      multiply_into(parts, {id, 1});
    }
  }
  return product_of(number, std::move(parts), type);
}

TermId TermTable::power(TermId a, double exponent) {
  const Term& base = (*this)[a];
  if (base.kind == Term::Kind::number) return number(std::pow(base.number, exponent), base.type);
  if (base.kind != Term::Kind::product) return product_of(1, {{a, exponent}}, base.type);
  const auto multiplies = [&](const Term::Part& part) {
    return (is_whole(exponent) && is_whole(part.factor)) || exponent == -1 ||
           (part.factor == -1 && base.parts.size() == 1);
  };
  const bool moderate = base.number == 1 || is_moderate(base.number, base.type.dtype);
  if (moderate && std::all_of(base.parts.begin(), base.parts.end(), multiplies) &&
      (is_whole(exponent) || base.number > 0)) {
    Term::Parts parts = base.parts;
    for (Term::Part& part : parts) part.factor *= exponent;
    return product_of(std::pow(base.number, exponent), std::move(parts), base.type);
  }
  if (!(base.number > 0) || !is_moderate(base.number, base.type.dtype))
    return product_of(1, {{a, exponent}}, base.type);
  const TermId rest = product_of(1, base.parts, base.type);
  return product_of(std::pow(base.number, exponent), {{rest, exponent}}, base.type);
}

TermId TermTable::scaled(TermId a, double factor) {
  const Term& term = (*this)[a];
  if (term.kind == Term::Kind::number) return number(term.number * factor, term.type);
  if (term.kind == Term::Kind::product) return product_of(term.number * factor, term.parts, term.type);
  return product_of(factor, {{a, 1}}, term.type);
}

TermId TermTable::contraction(const std::vector<TermId>& operands, const std::string& equation, const ValueType& type) {
  std::vector<std::pair<TermId, std::string>> sorted;
  sorted.reserve(operands.size());
  double number = 1;
  std::size_t begin = 0;
  for (const TermId operand : operands) {
    const std::size_t end = equation.find_first_of(",-", begin);
    std::string letters = equation.substr(begin, end - begin);
    begin = end + 1;
    Term::Part part = split(operand);
    number *= part.factor;
    for (const Term* inner = &(*this)[part.term]; inner->kind == Term::Kind::transposed; inner = &(*this)[part.term]) {
      std::string of_inner = letters;
      for (std::size_t i = 0; i < letters.size(); ++i) of_inner[inner->text[i]] = letters[i];
      letters = of_inner;
      part.term = inner->parts[0].term;
    }
    const auto comes_after = [&](const auto& other) { return other.first > part.term; };
    sorted.emplace(std::find_if(sorted.begin(), sorted.end(), comes_after), part.term, std::move(letters));
  }
  Term::Parts parts;
  std::string written;
  for (const auto& [operand, letters] : sorted) {
    written += (parts.empty() ? "" : ",") + letters;
    parts.push_back({operand});
  }
  written += "->" + equation.substr(equation.find('>') + 1);
  const TermId whole = intern({.kind = Term::Kind::contraction,
                               .parts = std::move(parts),
                               .text = stored(with_letters_in_order(std::move(written))),
                               .type = stored(type)});
  return number == 1 ? whole : product_of(number, {{whole, 1}}, type);
}

TermId TermTable::reshaped(TermId a, const ValueType& type, const Op& reshape) {
  const Term::Part part = split(a);
  TermId inner = part.term;
  while ((*this)[inner].kind == Term::Kind::reshaped) inner = (*this)[inner].parts[0].term;
  if ((*this)[inner].type == type) return scaled(inner, part.factor);
  if ((*this)[inner].kind == Term::Kind::number) return number((*this)[inner].number * part.factor, type);
  Term term{.kind = Term::Kind::reshaped, .op = &reshape, .parts = {{inner}}, .type = stored(type)};
  term.attributes.set("shape", std::vector<std::int64_t>(type.shape.begin(), type.shape.end()));
  return scaled(intern(std::move(term)), part.factor);
}

TermId TermTable::transposed(TermId a, const std::vector<std::size_t>& axes, const ValueType& type) {
  const Term::Part part = split(a);
  const Term& inner = (*this)[part.term];
  std::string order;
  for (const std::size_t axis : axes) order += static_cast<char>(axis);
  if (inner.kind == Term::Kind::contraction) {
    const std::size_t arrow = inner.text.find('>') + 1;
    std::string equation = inner.text.substr(0, arrow);
    for (const char axis : order) equation += inner.text[arrow + static_cast<std::size_t>(axis)];
    std::vector<TermId> operands;
    for (const Term::Part& each : inner.parts) operands.push_back(each.term);
    return scaled(contraction(operands, equation, type), part.factor);
  }
  const bool again = inner.kind == Term::Kind::transposed;
  const TermId from = again ? inner.parts[0].term : part.term;
  for (char& axis : order) axis = again ? inner.text[axis] : axis;
  if (std::is_sorted(order.begin(), order.end())) return again ? scaled(from, part.factor) : a;
  Term term{.kind = Term::Kind::transposed, .parts = {{from}}, .text = stored(order), .type = stored(type)};
  return scaled(intern(std::move(term)), part.factor);
}

TermId TermTable::broadcast(TermId a, const ValueType& type) {
  if ((*this)[a].type == type) return a;
  return intern({.kind = Term::Kind::broadcast, .parts = {{a}}, .type = stored(type)});
}

TermId CanonicalCall::as_it_stands() const {
  return terms.call(*node.op, node.attributes, inputs, type(), output, node.op->random ? node.site.key : 0);
}

std::vector<std::int64_t> CanonicalCall::from_the_back(const std::vector<std::int64_t>& axes) const {
  const auto rank = static_cast<std::int64_t>(terms[inputs[0]].type.shape.size());
  std::vector<std::int64_t> result;
  for (const std::int64_t axis : axes) result.push_back(axis < 0 ? axis : axis - rank);
  if (axes.empty())
    for (std::int64_t axis = -rank; axis < 0; ++axis) result.push_back(axis);
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace xtape
