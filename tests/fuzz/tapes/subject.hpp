/// What is tested: a tape, what is fed to it, and what is asked of it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "program.hpp"
#include "xtape/op.hpp"
#include "xtape/player.hpp"

namespace xtape::fuzz {

/// Which floats a program is recorded with: those that it names, or all of one width, to compare the widths; `moved` is
/// twofold, with every float that comes in moved by about float32's rounding, to see how much that does.
enum class Floats : std::uint8_t { as_written, single, twofold, moved };

/// The ops that programs call: the library's and some users' (own_ops.cpp).
const OpTable& ops();

/// While it lives, programs also call these ops.
class OpsGuard {
 public:
  explicit OpsGuard(const std::vector<const Op*>& more);
  OpsGuard(const OpsGuard&) = delete;
  OpsGuard& operator=(const OpsGuard&) = delete;
  ~OpsGuard();
};

class Subject {
 public:
  Subject(Mode mode, Floats floats) : tape(mode), floats_(floats) {
    tape.set_ops(ops());
    tape.set_default_dtype(dtype(tape.default_dtype()));
  }

  /// The dtype that stands for the one that the program names.
  Dtype dtype(Dtype written) const;

  Var input(const ValueType& type, const Numbers& numbers);
  Var parameter(const ValueType& type, const Numbers& numbers);
  Var constant(const ValueType& type, const Numbers& numbers);
  /// In mode predict: token numbers [b, t] that follow some up to `capacity`.
  Var tokens(const Shape& shape, std::int64_t capacity, const Numbers& numbers);
  void carry_states();  ///< What caches hold is carried.
  Vars call(const std::string& op, const std::vector<Operand>& operands, const Attributes& attributes = {});
  void give(const Var& output) { outputs.push_back(output); }
  void carry(const Var& input, const Var& output) { carries.push_back({input, output}); }

  void avoid_ties();  ///< From here on no two floats that are fed are likely to be equal.
  /// Gives the states of what is carried their first numbers.
  void start(Player& player) const;
  /// What play number `play` is fed. The arrays belong to the subject.
  std::vector<Feed> feeds(std::size_t play) const;

  Tape tape;
  Vars outputs;
  std::vector<Carry> carries;
  Vars inputs;  ///< All, also those that carries feed.

 private:
  ValueType mapped(const ValueType& type) const { return {dtype(type.dtype), type.shape}; }
  Array numbers_for(const ValueType& type, const Numbers& numbers, std::uint64_t play) const;

  Floats floats_;
  std::vector<Numbers> numbers_;  ///< Of the inputs.
  mutable std::vector<std::vector<Array>> fed_;
};

/// The array that `numbers` says for a type, in a play.
Array made(const ValueType& type, const Numbers& numbers, std::uint64_t play);

/// How to record a subject, as often as needed.
struct Recipe {
  Mode mode = Mode::train;
  std::function<void(Subject&)> record;
  std::shared_ptr<const Program> program = {};  ///< Where it is one.
};

}  // namespace xtape::fuzz
