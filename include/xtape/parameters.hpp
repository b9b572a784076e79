/// Parameters of programs by name: made when a program first asks for them, and found again by later programs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

#include "xtape/array.hpp"
#include "xtape/init.hpp"
#include "xtape/tape.hpp"

namespace xtape {

class Player;

/// The parameters that a program uses on one tape. Their arrays are in a Store, outside the tape:
///
///   Parameters p(tape, 1);
///   Var w = p("w", {in, out}, init::glorot_uniform());
///
/// The first call makes the array "w" of the store. Later ones find it: on this tape, or on another tape by other
/// Parameters of the same store (for evaluation, for another batch size, from a file):
///
///   Parameters q(eval_tape, p.store());
///
/// `p / "encoder"` names the same parameters within a scope: (p / "encoder")("w", …) is "encoder.w". These are the
/// names in files (save_arrays, load_arrays), and those of the weights of a Model.
///
/// A handle: copies and scopes share everything. For one thread at a time.
class Parameters {
 public:
  /// Makes parameters in a new store. `seed` determines the numbers of init::normal and others.
  Parameters(const Tape& tape, std::uint64_t seed);
  /// Finds the arrays of `store`, which must outlive this, and makes those that it lacks.
  Parameters(const Tape& tape, Store& store, std::uint64_t seed);
  /// Finds the arrays that `store` has now, and makes none: a name that it lacks is an Error.
  Parameters(const Tape& tape, const Store& store);
  Parameters(const Parameters&) = default;
  Parameters& operator=(const Parameters&) = default;

  /// The parameter of that name, of the tape's default dtype, on the tape. The first call for a store makes the array.
  /// Throws Error, with the nearest name, if it is not there and cannot be made, or for an empty name; ShapeError or
  /// DtypeError if it is there and has another shape or dtype, and as `initialise` does.
  Var operator()(const std::string& name, const Shape& shape, const Initialiser& initialiser,
                 Caller caller = Caller::here()) const;
  /// The same for a parameter that starts as a copy of `initial`, of its shape and dtype.
  Var operator()(const std::string& name, const ArrayView& initial, Caller caller = Caller::here()) const;

  /// The parameter that the store has under that name, of any type. Throws Error, with the nearest name, without one.
  Var operator()(const std::string& name, Caller caller = Caller::here()) const;

  /// The same parameters, whose names begin with "SCOPE.". Throws Error for an empty scope.
  Parameters scope(const std::string& name) const;
  Parameters operator/(const std::string& name) const { return scope(name); }
  template <class T, class = std::enable_if_t<std::is_integral<T>::value>>
  Parameters operator/(T index) const {  ///< p / "layers" / 0: "layers.0."
    return scope(std::to_string(index));
  }
  const std::string& prefix() const;  ///< What names begin with: "encoder.", or "".

  Tape tape() const;
  Store& store() const;  ///< All arrays, also those that this tape does not use.
  /// The same, where a store of weights is wanted: Optimizer(p, …), save_arrays(path, p).
  operator const Store&() const { return store(); }  // NOLINT: converts by intent
  /// The vars that gradients train, by full name, in the order of their first use on this tape: grad(loss, p.vars()).
  NamedVars vars() const;
  Vars list() const;           ///< The same without names.
  std::int64_t count() const;  ///< Their elements.

  // Parameters that no gradient trains, such as the scale of the inputs, or running means that the program updates.
  /// Like operator(), but not among vars(), and behind a stop_gradient: Step leaves it unchanged. After record_update:
  /// the new value.
  Var statistic(const std::string& name, const Shape& shape, const Initialiser& initialiser,
                Caller caller = Caller::here()) const;
  /// The same for a statistic that starts as a copy of `initial`, of its shape and dtype:
  /// p.statistic("mean", mean_of_rows).
  Var statistic(const std::string& name, const ArrayView& initial, Caller caller = Caller::here()) const;
  /// The statistic that the store has under that name, of any type. Throws Error, with the nearest name, without one.
  Var statistic(const std::string& name, Caller caller = Caller::here()) const;
  /// Makes `value` the new value of a statistic, which `update` assigns after a play. Throws Error if there is no such
  /// statistic, ShapeError or DtypeError if `value` has another type.
  void record_update(const std::string& name, const Var& value, Caller caller = Caller::here()) const;
  /// The new values, by full name: outputs that a player must have for `update`.
  const NamedVars& updates() const;
  /// Assigns the new values of the last play. Throws as Player::view does.
  void update(const Player& player) const;

 private:
  struct Data;
  Parameters(std::shared_ptr<Data> data, std::string prefix);
  std::string full_name(const std::string& name) const;

  std::shared_ptr<Data> data_;
  std::string prefix_;
};

}  // namespace xtape
