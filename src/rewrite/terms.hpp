/// What recorded calls compute, as terms in canonical form: `scores / c` and `scores * (1 / c)` are equal terms, and so
/// are `x * x` and `square(x)`, or `a + b` and `b + a`. Terms are only for matching. Players never run them.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "xtape/op/op.hpp"

namespace xtape {

/// The number of a term within its TermTable. Terms of later values have larger numbers.
using TermId = std::int32_t;

/// What a value is in canonical form.
struct Term {
  enum class Kind : std::uint8_t {
    value,    ///< The value of a source, or of calls into which matching does not look.
    number,   ///< The literal `number`.
    shared,   ///< The part: a sum or product that several calls read. It is one operand of other sums and products.
    sum,      ///< number + sum of factor * part. The first factor is 1, except for extreme literals (see TermTable).
    product,  ///< number * product of part ** factor.
    call      ///< Output `output` of a call of `op` on the parts, in this order.
  };
  struct Part {
    TermId term = -1;
    double factor = 1;  ///< The coefficient in a sum, the exponent in a product, otherwise 1.
    friend auto operator<=>(const Part& a, const Part& b) = default;
  };
  using Parts = SmallVector<Part, 2>;

  Kind kind = Kind::value;
  std::int32_t output = 0;
  const Op* op = nullptr;
  double number = 0;
  Parts parts = {};         ///< Sorted by term number in sums and products.
  TermId rest = -1;         ///< The term of a product without its literal; -1 if there is none yet.
  ValueId value = {};       ///< The first value of the tape that has this term. Its node is -1 if no value has it.
  std::uint64_t draws = 0;  ///< For a call of a random op, the key of its site. Different draws are different terms.
  /// Of an einsum, the equation with its letters in order of first use; of a transpose, the axes as chars.
  std::string text = {};
  Attributes attributes = {};  ///< The attributes of any other call.
  const ValueType& type;
};

/// Ops to which canonical form gives a meaning of their own.
struct TermOps {
  const Op &broadcast_to, &einsum, &logical_not, &masked_fill, &mean, &reshape, &transpose;
};
const TermOps& term_ops();

/// Returns an einsum equation with its letters renamed to a, b, c … (then A, B …) in order of first use.
std::string with_letters_in_order(std::string equation);

/// The terms of a range of nodes. References to terms are valid as long as the table, those to types must be as well.
///
/// The functions make only simplifications that are valid for all values. `sqrt(x) * sqrt(x)` does not become x, `x /
/// x` does not become 1, and `(x + c) - c` does not become x. Literals become coefficients, except for magnitudes above
/// 2^40 or below 2^-40 (for float64, 2^400 and 2^-400), because intermediate results would overflow or vanish. Sums and
/// products are flattened up to 8 parts. Longer sums and products stay nested, so that chains of n calls take O(n).
class TermTable {
 public:
  const Term& operator[](TermId id) const {
    return blocks_[static_cast<std::size_t>(id) / together][static_cast<std::size_t>(id) % together];
  }
  std::size_t size() const { return size_; }
  const std::vector<const Op*>& ops() const { return ops_; }  ///< The ops of the terms (null is one), each once.

  TermId add(Term&& term);
  TermId call(const Op& op, const Attributes& attributes, const std::vector<TermId>& inputs, const ValueType& type,
              std::int32_t output = 0, std::uint64_t draws = 0);
  const ValueType& stored(ValueType type) { return types_.emplace_back(std::move(type)); }
  /// Notes that the value has this term.
  void set_value(TermId id, ValueId value) {
    if (at(id).value.node < 0) at(id).value = value;
  }

  // The following functions are for floats only. Integers wrap, so these simplifications are not valid for integers.

  /// a_factor * a + b_factor * b, with broadcasting.
  TermId sum(TermId a, double a_factor, TermId b, double b_factor, const ValueType& type);
  TermId product(TermId a, TermId b, const ValueType& type);  ///< a * b, with broadcasting.
  TermId power(TermId a, double exponent);
  TermId scaled(TermId a, double factor);  ///< factor * a
  /// The equation must have '->' and one letter per axis, but no ellipses or spaces.
  TermId contraction(const std::vector<TermId>& operands, const std::string& equation, const ValueType& type);

  // The literal factor of an operand becomes a factor of the result.

  TermId reshaped(TermId a, const ValueType& type);
  TermId transposed(TermId a, std::string axes, const ValueType& type);
  TermId filled(TermId a, TermId mask, double value, const ValueType& type);
  TermId opposite(TermId mask);

  /// Returns what a shared term shares, and any other term itself.
  TermId inside(TermId id) const { return (*this)[id].kind == Term::Kind::shared ? (*this)[id].parts[0].term : id; }
  /// Splits off the literal factor of a term: 3 * x gives {x, 3}. A term without a literal factor gives {id, 1}.
  Term::Part split(TermId id);
  /// Adds factor * inner to the sum `whole`, or multiplies the product `whole` by inner ** factor, part by part. Equal
  /// parts become one if `merges`.
  void flatten(Term& whole, const Term& inner, double factor, bool merges = true) const;

 private:
  Term& at(TermId id) { return const_cast<Term&>((*this)[id]); }
  TermId without_literal(TermId id);
  TermId product_of(double number, Term::Parts parts, const ValueType& type, TermId rest = -1);
  TermId without_broadcast(TermId a, TermId other, const ValueType& type) const;
  bool equal(TermId a, TermId b, int depth = 6) const;
  void merge(Term& whole, const Term::Part& part) const;

  static constexpr std::size_t together = 64;  // terms per block; blocks do not move in memory
  std::vector<std::vector<Term>> blocks_;
  std::size_t size_ = 0;
  std::vector<const Op*> ops_;
  std::deque<ValueType> types_;  // those that no node has
};

}  // namespace xtape
