/// The canonical form of recorded calls, for finding equal meanings in unequal spellings: `scores / c` and
/// `scores * (1 / c)` are one term, so are `x * x` and `square(x)`, `a + b` and `b + a`. Terms serve matching alone:
/// nothing is played in canonical form.
#pragma once

#if defined(XTAPE_LAYER) && XTAPE_LAYER < 2
#error "this layer of xtape may not see the tape layer"
#endif

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "xtape/tape.hpp"

namespace xtape {

/// A term of one `Terms`, by number. Equal terms have one number.
using TermId = std::int32_t;

struct Term {
  enum class Kind : std::uint8_t {
    value,        ///< A value of the tape that nothing is known of.
    number,       ///< A literal.
    sum,          ///< number + sum of factor * part. The first factor is 1.
    product,      ///< number * product of part ** factor.
    contraction,  ///< A sum of products over named axes, as einsum's: `text` is the equation.
    reshaped,     ///< The part's elements under another shape.
    transposed,   ///< The part's axes in another order: axis i is axis text[i] of the part.
    broadcast,    ///< The part, repeated along axes.
    call          ///< A call of `op` on the parts, in their order.
  };
  struct Part {
    TermId term = -1;
    double factor = 1;  ///< In a sum a coefficient, in a product an exponent.
  };

  Kind kind = Kind::value;
  ValueType type;
  std::vector<Part> parts = {};
  double number = 0;
  std::string text = {};
  ValueId value = {};
  const Op* op = nullptr;
  Attributes attributes = {};
  std::int32_t output = 0;
  std::uint64_t draws = 0;  ///< Of an op that draws at random: the key of its site.
};

/// Equal for equal attributes.
std::size_t hash_of(const Attributes& attributes);

/// An equation of einsum with its letters named a, b, c … in the order of their first use.
std::string with_letters_in_order(std::string equation);

/// Terms of one stretch of tape.
class Terms {
 public:
  const Term& operator[](TermId id) const { return terms_[static_cast<std::size_t>(id)]; }
  std::size_t size() const { return terms_.size(); }

  TermId value(ValueId id, const ValueType& type);
  TermId number(double number, const ValueType& type);
  TermId call(const Op& op, const Attributes& attributes, const std::vector<TermId>& inputs, const ValueType& type,
              std::int32_t output = 0, std::uint64_t draws = 0);

  // Of floats alone, since integers wrap. `type` is that of the result.
  TermId sum(TermId a, double a_factor, TermId b, double b_factor, const ValueType& type);
  TermId product(TermId a, TermId b, const ValueType& type);
  TermId power(TermId a, double exponent);
  TermId scaled(TermId a, double factor);
  /// `equation` without ellipses; every operand's letters are its axes.
  TermId contraction(const std::vector<TermId>& operands, const std::string& equation, const ValueType& type);

  /// `reshape` is the op that makes it, with attribute "shape".
  TermId reshaped(TermId a, const ValueType& type, const Op& reshape);
  TermId transposed(TermId a, const std::vector<std::size_t>& axes, const ValueType& type);
  TermId broadcast(TermId a, const ValueType& type);

  /// The literal that a term is; nothing if it is none.
  std::optional<double> number_of(TermId id) const;
  /// A term as a multiple of another one: 3 * x is {x, 3}.
  Term::Part split(TermId id);

 private:
  TermId intern(Term term);
  TermId product_of(double number, std::vector<Term::Part> parts, const ValueType& type);
  TermId without_broadcast(TermId a, TermId beside, const ValueType& type) const;

  std::deque<Term> terms_;
  std::unordered_multimap<std::size_t, TermId> by_hash_;
};

/// What a row's `canonical` sees: a call of it whose inputs have their terms already.
struct CanonicalCall {
  Terms& terms;
  const Node& node;
  std::int32_t output = 0;
  std::vector<TermId> inputs;

  const ValueType& type() const { return node.outputs[static_cast<std::size_t>(output)]; }
  const Attributes& attributes() const { return node.attributes; }
  /// The call as it stands.
  TermId as_it_stands() const;
  /// Axes counted from the back, so that arrays of more axes in front have the same.
  std::vector<std::int64_t> from_the_back(const std::vector<std::int64_t>& axes) const;
};

}  // namespace xtape
