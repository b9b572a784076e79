/// The canonical form of recorded calls. Rules use it to recognise equal computations in different forms: `scores / c`
/// and `scores * (1 / c)` are one term, and so are `x * x` and `square(x)`, or `a + b` and `b + a`. Terms are only for
/// matching. Players never run the canonical form.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "xtape/tape.hpp"

namespace xtape {

/// The number of a term within its TermTable. Equal terms have the same number.
using TermId = std::int32_t;

/// The computation of a value in canonical form. Only TermTable makes terms, and stores equal texts and types once. Two
/// terms are equal if all fields are equal.
struct Term {
  static inline const std::string no_text = {};
  enum class Kind : std::uint8_t {
    value,    ///< A value of the tape, without its computation. The field `value` identifies it.
    number,   ///< The literal `number`.
    sum,      ///< number + sum of factor * part. The first factor is 1, except for extreme literals (see TermTable).
    product,  ///< number * product of part ** factor.
    contraction,  ///< An einsum of the parts. `text` is the equation in the form of with_letters_in_order.
    reshaped,     ///< The part's elements in row-major order, with the shape of `type`.
    transposed,   ///< The part with permuted axes: axis i is axis number text[i] (the char's value) of the part.
    broadcast,    ///< The part, broadcast to the shape of `type`.
    call          ///< Output `output` of a call of `op` on the parts, in this order.
  };
  struct Part {
    TermId term = -1;
    double factor = 1;  ///< The coefficient in a sum, the exponent in a product, otherwise 1.
  };

  using Parts = SmallVector<Part, 2>;

  // The fields that matching reads first are adjacent in memory.
  Kind kind = Kind::value;
  std::int32_t output = 0;
  const Op* op = nullptr;  ///< The op of a call, or the reshaping op of `reshaped`.
  double number = 0;
  Parts parts = {};  ///< Sorted by term number in sums, products and contractions.
  ValueId value = {};
  /// For a call of a random op, the key of its site. Different draws are therefore different terms.
  std::uint64_t draws = 0;
  Attributes attributes = {};  ///< The attributes of `op`.
  const std::string& text = no_text;
  const ValueType& type;  ///< The type of the value that the term describes.
};

/// Returns a hash of the values of attributes. Equal attributes have equal hashes.
std::size_t hash_of(const Attributes& attributes);

/// Returns an einsum equation with its letters renamed to a, b, c … (then A, B …) in order of first use.
std::string with_letters_in_order(std::string equation);

/// The terms of a range of nodes. The table stores equal terms once. References to terms are valid as long as the
/// table.
///
/// The functions make only simplifications that are valid for all values. `sqrt(x) * sqrt(x)` does not become x, `x /
/// x` does not become 1, and `(x + c) - c` does not become x. Literals become coefficients, except for magnitudes above
/// 2^40 or below 2^-40 (for float64, 2^400 and 2^-400), because intermediate results would overflow or vanish. Sums and
/// products are flattened up to 8 parts. Longer sums and products stay nested, so that chains of n calls take O(n). The
/// functions do not check the given types.
class TermTable {
 public:
  TermTable() = default;
  TermTable(TermTable&&) = default;
  TermTable& operator=(TermTable&&) = default;  // terms refer to the table, so it cannot be copied

  const Term& operator[](TermId id) const {
    return blocks_[static_cast<std::size_t>(id) / together][static_cast<std::size_t>(id) % together];
  }
  std::size_t size() const { return size_; }
  const std::vector<const Op*>& ops() const { return ops_; }  ///< The ops of the terms, without duplicates.

  // `type` is always the type of the result.

  TermId value(ValueId id, const ValueType& type);
  TermId number(double number, const ValueType& type);
  /// Output `output` of a call of `op`. `draws` is the key of the site of a random op, otherwise 0.
  TermId call(const Op& op, const Attributes& attributes, const std::vector<TermId>& inputs, const ValueType& type,
              std::int32_t output = 0, std::uint64_t draws = 0);

  // The following functions are for floats only. Integers wrap, so these simplifications are not valid for integers.

  /// a_factor * a + b_factor * b, with broadcasting.
  TermId sum(TermId a, double a_factor, TermId b, double b_factor, const ValueType& type);
  /// a * b, with broadcasting. A quotient is the product with power(b, -1).
  TermId product(TermId a, TermId b, const ValueType& type);
  /// a ** exponent, of a's type.
  TermId power(TermId a, double exponent);
  /// factor * a, of a's type.
  TermId scaled(TermId a, double factor);
  /// einsum(equation, operands). The equation must have '->' and one letter per axis, but no ellipses or spaces.
  TermId contraction(const std::vector<TermId>& operands, const std::string& equation, const ValueType& type);

  /// `a` with the shape of `type`. `reshape` is the reshaping op, with the attribute "shape".
  TermId reshaped(TermId a, const ValueType& type, const Op& reshape);
  /// Axis i of the result is axis axes[i] of `a`.
  TermId transposed(TermId a, const std::vector<std::size_t>& axes, const ValueType& type);
  /// `a` broadcast to the shape of `type`.
  TermId broadcast(TermId a, const ValueType& type);

  /// The value of a literal term. Empty if the term is not a literal.
  std::optional<double> number_of(TermId id) const;
  /// Splits off the literal factor of a term: 3 * x gives {x, 3}. A term without a literal factor gives {id, 1}.
  Term::Part split(TermId id);

 private:
  TermId intern(Term&& term);
  const std::string& stored(std::string text) { return *texts_.insert(std::move(text)).first; }
  const ValueType& stored(const ValueType& type) { return *types_.insert(type).first; }
  TermId product_of(double number, Term::Parts parts, const ValueType& type);
  TermId without_broadcast(TermId a, TermId other, const ValueType& type) const;

  static constexpr std::size_t together = 64;  // terms per block; blocks do not move in memory

  struct Place {
    std::uint32_t hash = 0;
    TermId term = -1;
  };
  struct TypeHash {
    std::size_t operator()(const ValueType& type) const;
  };
  Place& place_of(const Term& term, std::uint32_t hash);
  void make_room();

  std::vector<std::vector<Term>> blocks_;
  std::size_t size_ = 0;
  std::vector<Place> places_;  // a hash table; its size is a power of 2
  std::vector<const Op*> ops_;
  std::unordered_set<std::string> texts_;
  std::unordered_set<ValueType, TypeHash> types_;
};
#ifndef XTAPE_NO_OLD_NAMES
using Terms [[deprecated("write TermTable")]] = TermTable;
#endif

/// The argument of Op::canonical, which returns the term of one output of a call. `grad` and players call it for each
/// output when they look for rules. If the call of an op is a sum, product, contraction, reshape, transpose or
/// broadcast of floats, Op::canonical uses the function of `terms` for it. For any other call, it returns
/// as_it_stands().
struct CanonicalCall {
  TermTable& terms;
  const Node& node;            ///< The call.
  std::int32_t output = 0;     ///< The output whose term is needed.
  std::vector<TermId> inputs;  ///< The terms of the inputs.

  const ValueType& type() const { return node.outputs[static_cast<std::size_t>(output)]; }
  const Attributes& attributes() const { return node.attributes; }
  /// The term of kind `call` for this output.
  TermId as_it_stands() const;
  /// Returns `axes` of input 0 as sorted negative axes (-1 is the last). If `axes` is empty, returns all axes. A term
  /// with negative axes also matches arrays with more leading axes.
  std::vector<std::int64_t> from_the_back(const std::vector<std::int64_t>& axes) const;
};

}  // namespace xtape
