/// Draws random programs. Each step is recorded as soon as it is drawn; if the library's shape rules refuse it, another
/// step is drawn.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "program.hpp"
#include "random.hpp"
#include "record.hpp"
#include "subject.hpp"

namespace xtape::fuzz {

struct DrawOptions {
  std::string focus;  ///< An op to draw often; empty: all with the same probability.
};

/// The program of a seed.
Program draw(std::uint64_t seed, const DrawOptions& options = {});

/// A call that is not recorded yet.
struct Draft {
  std::vector<Term> operands;
  Attributes attributes = {};
};

/// The known properties of a value besides its type.
struct Known {
  Ref ref;
  bool exact = false;     ///< Computed without rounding: it has the same bits with any passes.
  bool steady = false;    ///< Exact, or so irregular that rounding changes no comparison with an element.
  bool positive = false;  ///< At least about 1/4.
};

/// Thrown if the drawn step cannot be recorded; another step is then drawn.
struct Refused : Error {
  using Error::Error;
};

class Drawer {
 public:
  Drawer(std::uint64_t seed, const DrawOptions& options);
  Program run();

  // For the functions that draw the operands and attributes of one op (drawn_*.cpp).

  Random random;
  const ValueType& type(Ref ref) const { return recorder_.at(ref).type(); }
  const Shape& shape(Ref ref) const { return type(ref).shape; }
  /// An existing value that fits; a new source if there is none.
  Ref any(const std::function<bool(const ValueType&)>& fits);
  Ref any();
  Ref number();  ///< Not bool.
  Ref floating(std::size_t least_rank = 0);
  Ref integer();
  Ref flag();
  Ref fitting(const ValueType& type);  ///< A value of exactly this type.
  Ref fitting(Ref like) { return fitting(ValueType(type(like))); }
  Ref positive(Ref x);               ///< x, or a value of its type away from 0.
  Ref steady(Ref x);                 ///< x, or x with irregular numbers added.
  Term partner(Ref x);               ///< A value that broadcasts with x, of its dtype; or a literal.
  Ref mask_for(const Shape& shape);  ///< bool, broadcasting to `shape`.
  std::optional<Ref> indices(const Shape& shape, std::int64_t size);  ///< In [0, size); nullopt if `size` is 0.
  Ref source(const ValueType& type, const Numbers& numbers = {});
  std::int64_t size() { return random.pick(sizes_); }
  Shape any_shape();
  std::int64_t axis_of(Ref x);  ///< Negative or not. Of rank 0: 0.
  std::int64_t work_limit() const { return 40 * most_elements_; }
  std::int64_t most_elements() const { return most_elements_; }
  Dtype real() const { return real_; }
  bool has_past(Ref ref) const { return !subject_.tape.past_of(recorder_.at(ref)).empty(); }

  /// Records a call and returns its first output; nullopt if it is refused or too large.
  std::optional<Ref> call(const std::string& op, const Draft& draft);
  Ref must(const std::string& op, const Draft& draft);  ///< As `call`, for calls that cannot fail.

 private:
  struct Scope;
  const Known& known(Ref ref) const;
  int new_id() { return next_id_++; }
  Draft generic(const Op& op);
  void draw_attributes(const Op& op, Draft& draft);
  std::optional<Draft> drafted(const Op& op);
  /// Calls `recording`, which records `step`, and appends the step. Returns its first output; nullopt if it is refused
  /// or too large.
  std::optional<Ref> record(Step& step, const std::function<void()>& recording);
  bool grow();  ///< Adds one or several steps; false if the drawn step was refused.
  bool grown();
  bool write_out(const Op& op);  ///< Adds the steps of the op's expansion instead of the op.
  bool draw_checkpoint();
  bool draw_scan();
  bool draw_grad();
  void draw_tokens();
  Ref loss();
  void draw_body(Block& block, const Vars& arguments);
  Ref state_like(const ValueType& type);
  void choose_size();
  void choose_outputs();
  void choose_carries();

  std::string focus_;
  Program program_;
  Subject subject_;
  Recorder recorder_;
  std::vector<Step>* steps_;  ///< The steps of the block that is being drawn.
  std::vector<Known> values_;
  std::map<Ref, Known> all_known_;
  std::vector<std::string> names_;
  std::vector<std::int64_t> sizes_;
  std::int64_t most_elements_ = 3000;
  int calls_ = 8;
  int depth_ = 0;
  int next_id_ = 0;
  Dtype real_ = Dtype::float64;
  bool mixed_ = false;
};

/// The information needed to draw calls of an op, in addition to its entry in the op table.
struct Hint {
  /// Draws operands and attributes, if the op's lists of these are not enough; nullopt if no existing value fits.
  std::function<std::optional<Draft>(Drawer&)> draft = {};
  bool exact = false;  ///< Moves, selects or counts elements: exact operands give exact results.
  bool grows = false;  ///< Results can be much larger than operands.
  bool jumps = false;  ///< The value or the gradient is discontinuous: operands must be steady.
  int positive = -1;   ///< The operand that must stay away from 0; -1: none.
};
const Hint& hint_of(const std::string& op);

/// Whether programs call the op. dequantize_blocks gives float32, also where the numbers of a program become float64,
/// and drawn shapes rarely have whole blocks; tests/ops/dequantize_blocks_test.cpp plays it in all ways.
inline bool is_drawn(const std::string& op) {
  return op != "dequantize_blocks";
}

/// The valid values of a text attribute; empty if a draft must set it.
std::vector<std::string> words_of(const std::string& attribute);

}  // namespace xtape::fuzz
