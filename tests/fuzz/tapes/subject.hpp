/// The subject of a test: a tape, its inputs and its outputs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "program.hpp"
#include "xtape/op/op.hpp"
#include "xtape/player.hpp"

namespace xtape::fuzz {

/// The float dtypes of a recording: as_written those of the program; `single` all float32; `twofold` all float64;
/// `moved` and `nudged` all float64 with every source value changed by about float32's rounding, or a hundred times
/// float64's, to measure its effect.
enum class Floats : std::uint8_t { as_written, single, twofold, moved, nudged };

/// The ops that programs call: the library's ops and some of users (own_ops.cpp).
const OpTable& ops();

/// Adds ops that programs may call, during its lifetime.
class OpsGuard {
 public:
  explicit OpsGuard(const std::vector<const Op*>& more);
  OpsGuard(const OpsGuard&) = delete;
  OpsGuard& operator=(const OpsGuard&) = delete;
  ~OpsGuard();
};

/// How inputs, parameters and constants are recorded: as the program says; or all as constants or all as inputs, with
/// the numbers of play 0.
enum class Sources : std::uint8_t { as_written, constants, inputs };

class Subject {
 public:
  Subject(Mode mode, Floats floats, Sources how = Sources::as_written) : tape(mode), floats_(floats), how_(how) {
    tape.set_ops(ops());
    tape.set_default_dtype(dtype(tape.default_dtype()));
  }

  /// The dtype that is recorded for one that the program names.
  Dtype dtype(Dtype written) const;

  Var input(const ValueType& type, const Numbers& numbers);
  Var parameter(const ValueType& type, const Numbers& numbers);
  Var constant(const ValueType& type, const Numbers& numbers);
  /// In mode predict: token numbers [b, t] that have a past; `capacity` is that of the caches.
  Var tokens(const Shape& shape, std::int64_t capacity, const Numbers& numbers);
  void carry_states();  ///< Carries the states of the caches.
  Vars call(const std::string& op, const std::vector<Operand>& operands, const Attributes& attributes = {});
  void give(const Var& output) { outputs.push_back(output); }
  /// With Floats::single, ops whose results are always float64 give another type than the input has.
  void carry(const Var& input, const Var& output);

  void avoid_ties();  ///< From this call on, equal floats among the inputs are unlikely.
  /// Sets the first values of the carried states.
  void start(Player& player) const;
  /// The feeds of play number `play`. The subject owns the arrays.
  std::vector<Feed> feeds(std::size_t play) const;

  Tape tape;
  Vars outputs;
  std::vector<Carry> carries;
  Vars inputs;   ///< All inputs, including carried ones.
  Vars sources;  ///< All sources, in the order of recording. Those recorded in bodies are stale.

 private:
  Var constant_of(const ValueType& type, const Numbers& numbers);
  Var input_of(const ValueType& type, const Numbers& numbers);
  /// Records a source in place of the one that the program says; empty if the program's is recorded.
  Var replaced(const ValueType& type, const Numbers& numbers);
  ValueType mapped(const ValueType& type) const { return {dtype(type.dtype), type.shape}; }
  Array numbers_for(const ValueType& type, const Numbers& numbers, std::uint64_t play) const;

  Floats floats_;
  Sources how_;
  std::vector<Numbers> numbers_;  ///< The numbers of the inputs.
  mutable std::vector<std::vector<Array>> fed_;
};

/// The array of a type with these numbers, in a play.
Array made(const ValueType& type, const Numbers& numbers, std::uint64_t play);

/// A function that records a subject, any number of times.
struct Recipe {
  Mode mode = Mode::train;
  std::function<void(Subject&)> record;
  std::shared_ptr<const Program> program = {};  ///< The program, if the recipe records one.
};

}  // namespace xtape::fuzz
