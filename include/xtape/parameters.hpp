/// Named parameters of programs. The first program that uses a name makes the parameter. Later programs find it.
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

/// The parameters that a program uses on one tape. A Store outside the tape contains their arrays:
///
///   Parameters p(tape, 1);
///   Var w = p("w", {in, out}, init::glorot_uniform());
///
/// The first call makes the array "w" of the store. Later calls find it, on this tape or on another tape through other
/// Parameters of the same store (for evaluation, for another batch size, from a file):
///
///   Parameters q(eval_tape, p.store());
///
/// `p / "encoder"` gives access to the parameters in a scope: (p / "encoder")("w", …) is "encoder.w". The names with
/// their scopes are the names in files (save_arrays, load_arrays) and of the weights of a Model.
///
/// Parameters is a handle. Copies and scopes share everything. Only one thread at a time may use them.
class Parameters {
 public:
  /// Makes parameters in a new store. `seed` determines the initial values of random initialisers such as init::normal.
  Parameters(const Tape& tape, std::uint64_t seed);
  /// Finds the arrays of `store`, and makes missing arrays. `store` must outlive this object.
  Parameters(const Tape& tape, Store& store, std::uint64_t seed);
  /// Finds the arrays that `store` contains now. A missing name is an Error.
  Parameters(const Tape& tape, const Store& store);
  Parameters(const Parameters&) = default;
  Parameters& operator=(const Parameters&) = default;

  /// Returns the parameter of this name on the tape. Its dtype is the tape's default dtype. The first call for a store
  /// makes the array. Throws Error if the name is empty, or if the array is missing and cannot be made; the message
  /// suggests the nearest name. Throws ShapeError or DtypeError if the existing array has another shape or dtype.
  /// Errors of `initialise` propagate.
  Var operator()(const std::string& name, const Shape& shape, const Initialiser& initialiser,
                 Caller caller = Caller::here()) const;
  /// The same for a parameter that starts as a copy of `initial`, with its shape and dtype.
  Var operator()(const std::string& name, const ArrayView& initial, Caller caller = Caller::here()) const;

  /// Returns the store's parameter of this name, of any type. Throws Error with the nearest name if the store has none.
  Var operator()(const std::string& name, Caller caller = Caller::here()) const;

  /// Access to the parameters of a scope, whose names begin with "NAME.". Throws Error if `name` is empty.
  Parameters scope(const std::string& name) const;
  Parameters operator/(const std::string& name) const { return scope(name); }
  template <class T, class = std::enable_if_t<std::is_integral<T>::value>>
  Parameters operator/(T index) const {  ///< p / "layers" / 0: "layers.0."
    return scope(std::to_string(index));
  }
  const std::string& prefix() const;  ///< The prefix of names: "encoder.", or "".

  Tape tape() const;
  Store& store() const;  ///< All arrays, including those that this tape does not use.
  /// Passes the parameters as a store of weights: Optimizer(p, …), save_arrays(path, p).
  operator const Store&() const { return store(); }  // NOLINT: converts by intent
  /// The vars that gradients train, by full name, in order of first use on this tape: grad(loss, p.vars()).
  NamedVars vars() const;
  Vars list() const;           ///< The vars that gradients train, without names.
  std::int64_t count() const;  ///< The number of elements of these vars.

  // Statistics: parameters that no gradient trains, such as the scale of the inputs, or running means that the program
  // updates.
  /// Returns a statistic. The arguments are those of operator(). No gradient flows to a statistic (stop_gradient), and
  /// vars() does not contain it, so Step leaves it unchanged. After record_update, `statistic` returns the new value.
  Var statistic(const std::string& name, const Shape& shape, const Initialiser& initialiser,
                Caller caller = Caller::here()) const;
  /// The same for a statistic that starts as a copy of `initial`, with its shape and dtype: p.statistic("mean",
  /// mean_of_rows).
  Var statistic(const std::string& name, const ArrayView& initial, Caller caller = Caller::here()) const;
  /// Returns the store's statistic of this name, of any type. Throws Error with the nearest name if there is none.
  Var statistic(const std::string& name, Caller caller = Caller::here()) const;
  /// Makes `value` the new value of a statistic. `update` assigns it after a play. Throws Error if there is no such
  /// statistic, ShapeError or DtypeError if `value` has another type.
  void record_update(const std::string& name, const Var& value, Caller caller = Caller::here()) const;
  /// The new values, by full name. They must be outputs of the player that is passed to `update`.
  const NamedVars& updates() const;
  /// Assigns the new values of the last play. Errors are those of Player::view.
  void update(const Player& player) const;

 private:
  struct Data;
  Parameters(std::shared_ptr<Data> data, std::string prefix);
  std::string full_name(const std::string& name) const;

  std::shared_ptr<Data> data_;
  std::string prefix_;
};

}  // namespace xtape
