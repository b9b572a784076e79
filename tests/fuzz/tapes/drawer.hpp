/// Programs at random. A step is recorded as soon as it is drawn: the library's own shape rules say what fits, and what
/// they refuse is drawn anew.
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
  std::string focus;  ///< An op to draw again and again; empty: all alike.
};

/// The program of a seed.
Program draw(std::uint64_t seed, const DrawOptions& options = {});

/// A call that is not recorded yet.
struct Draft {
  std::vector<Term> operands;
  Attributes attributes = {};
};

/// What is known of a value besides its type.
struct Known {
  Ref ref;
  bool exact = false;     ///< No rounding went into it: it has the same bits, whatever the passes do.
  bool steady = false;    ///< Exact, or so irregular that rounding makes no two elements equal, or other than they are.
  bool positive = false;  ///< At least about 1/4.
};

/// What was drawn cannot be recorded, and something else is drawn.
struct Refused : Error {
  using Error::Error;
};

class Drawer {
 public:
  Drawer(std::uint64_t seed, const DrawOptions& options);
  Program run();

  // For those who draw the operands and attributes of one op (drawn_*.cpp).

  Random random;
  const ValueType& type(Ref ref) const { return recorder_.at(ref).type(); }
  const Shape& shape(Ref ref) const { return type(ref).shape; }
  /// A value that is there; a new source where none fits.
  Ref any(const std::function<bool(const ValueType&)>& fits);
  Ref any();
  Ref number();                                ///< Not bool.
  Ref floating(std::size_t least_rank = 0);
  Ref integer();
  Ref flag();
  Ref fitting(const ValueType& type);          ///< A value of just this type.
  Ref fitting(Ref like) { return fitting(ValueType(type(like))); }
  Ref positive(Ref x);                         ///< x, or something of its type away from 0.
  Ref steady(Ref x);                           ///< x, or x with irregular numbers added.
  Term partner(Ref x);                         ///< What broadcasts with x, of its dtype, or a literal.
  Ref mask_for(const Shape& shape);            ///< bool, broadcasting to `shape`.
  std::optional<Ref> indices(const Shape& shape, std::int64_t size);  ///< In [0, size); nothing where there are none.
  Ref source(const ValueType& type, const Numbers& numbers = {});
  std::int64_t size() { return random.pick(sizes_); }
  Shape any_shape();
  std::int64_t axis_of(Ref x);                 ///< Negative or not. Of rank 0: 0.
  std::int64_t work_limit() const { return 40 * most_elements_; }
  std::int64_t most_elements() const { return most_elements_; }
  Dtype real() const { return real_; }
  bool has_past(Ref ref) const { return !subject_.tape.past_of(recorder_.at(ref)).empty(); }

  /// Records a call; nothing where it is refused or too big. Its first output.
  std::optional<Ref> call(const std::string& op, const Draft& draft);
  Ref must(const std::string& op, const Draft& draft);  ///< The same, for calls that cannot fail.

 private:
  struct Scope;
  const Known& known(Ref ref) const;
  int new_id() { return next_id_++; }
  Draft generic(const Op& op);
  void draw_attributes(const Op& op, Draft& draft);
  std::optional<Draft> drafted(const Op& op);
  /// Calls `recording`, which records `step`, and appends it. Nothing where it is refused or too big; else its first output.
  std::optional<Ref> record(Step& step, const std::function<void()>& recording);
  bool grow();            ///< One more step, or several; false where what was drawn was refused.
  bool grown();
  bool write_out(const Op& op);  ///< Draws the op's expansion in its place.
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
  std::vector<Step>* steps_;  ///< Of the block that is being drawn.
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

/// What must be known of an op to draw it, beyond its row.
struct Hint {
  /// Operands and attributes, where the row's own list does not say enough; nothing where no value at hand serves.
  std::function<std::optional<Draft>(Drawer&)> draft = {};
  bool exact = false;        ///< Moves, picks or counts: exact operands give exact results.
  bool grows = false;        ///< Results can be much greater than operands.
  bool jumps = false;        ///< Its value or gradient jumps: operands must be steady.
  int positive = -1;         ///< The operand that must stay away from 0; -1: none.
};
const Hint& hint_of(const std::string& op);

/// The words that a text attribute may have; empty where a draft must say.
std::vector<std::string> words_of(const std::string& attribute);

}  // namespace xtape::fuzz
