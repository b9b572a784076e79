/// Functions of arrays: recorded and planned when they are first called, and again for other shapes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "xtape/literal.hpp"
#include "xtape/player.hpp"

namespace xtape {

/// An argument of a function of arrays: an array, as a feed takes it, or a number. A real number becomes a scalar of the
/// default dtype of the function's tapes, an integer an int64 scalar, a bool a bool scalar.
class ArrayOrNumber {
 public:
  template <class T, class = std::enable_if_t<std::is_arithmetic<T>::value>>
  ArrayOrNumber(T number) : number_(Literal(number)) {}  // NOLINT: converts by intent
  template <class T, class = std::enable_if_t<!std::is_arithmetic<std::decay_t<T>>::value &&
                                              std::is_convertible<T&&, ArrayView>::value>,
            class = void>
  ArrayOrNumber(T&& array) : array_(std::forward<T>(array)) {}  // NOLINT: converts by intent

  /// The array, or an array of the number; `real` is the dtype of a real number. Throws as ArrayView does.
  ArrayView view(Dtype real) const;

 private:
  ArrayView array_;
  std::optional<Literal> number_;
};

/// A function of arrays, as jax.jit makes one. The first call with arrays of some types records the function on a tape
/// of its own and plans it; later calls with these types only play. Each combination of types has its own plan, which
/// lives as long as this. Arrays that the function uses as parameters (Tape::parameter) are read at every call; what it
/// takes as constants is copied when it is recorded. A number of the program that the function captures is such a
/// constant: a number that changes from call to call must be an argument.
///
///   Compiled step([&](Var x, Var y) { return mean(square(matmul(x, x.tape().parameter("w", w)) - y)); });
///   double loss = step({batch, labels})[0]();
///
/// For one thread at a time. A copy shares the plans and has players of its own, so that each thread plays a copy; the
/// function is recorded for one of them at a time.
class Compiled {
 public:
  using Function = std::function<Vars(const Vars&)>;

  /// A function of one to eight vars, or of Vars, which returns a Var or Vars. It is called once for each plan, with
  /// inputs of a new tape like `like`: its mode, default dtype and ops. Carries of `options` are not supported.
  template <class F, class = std::enable_if_t<!std::is_same<std::decay_t<F>, Compiled>::value>>
  explicit Compiled(F function, const PlayerOptions& options = {}, const Tape& like = Tape())
      : Compiled(Recorded{}, function_of(std::move(function)), options, like) {}
  Compiled(const Compiled& other);
  Compiled& operator=(const Compiled& other) { return *this = Compiled(other); }
  Compiled(Compiled&&) noexcept = default;  ///< Using what was moved from throws HandleError.
  Compiled& operator=(Compiled&&) noexcept = default;

  /// The results for these arguments: dense views, valid until the next call. Each call is a random step of its own.
  /// Throws as recording, Player and Player::play do, and Error for options with carries.
  std::vector<ArrayView> operator()(const std::vector<ArrayOrNumber>& arguments, Caller caller = Caller::here());
  template <class List, class = std::enable_if_t<std::is_convertible<typename List::value_type, ArrayView>::value>>
  std::vector<ArrayView> operator()(const List& arguments, Caller caller = Caller::here()) {
    return (*this)(std::vector<ArrayOrNumber>(arguments.begin(), arguments.end()), caller);
  }

  std::size_t plans() const;   ///< How many there are, of all copies.
  const Player& last() const;  ///< The player of the last call, for its plan; Error before the first call.
  std::uint64_t step() const;  ///< The random step of the next call; at first 0.
  void set_step(std::uint64_t random_step);
  void clear();  ///< Forgets all plans; copies keep those that they have played.

  /// A function of one to eight vars, or of Vars, as a function of Vars.
  template <std::size_t n = 1, class F>
  static Function function_of(F function) {
    if constexpr (std::is_invocable<F&, const Vars&>::value) {
      return [function = std::move(function)](const Vars& x) mutable { return listed(function(x)); };
    } else {
      static_assert(n <= 8, "a compiled function takes one to eight vars, or Vars, and returns a Var or Vars");
      if constexpr (n <= 8 && takes<F>(std::make_index_sequence<n>()))
        return spread<n>(std::move(function), std::make_index_sequence<n>());
      else if constexpr (n <= 8)
        return function_of<n + 1>(std::move(function));
    }
  }

 private:
  struct Recorded {};
  Compiled(Recorded, Function function, const PlayerOptions& options, const Tape& like);

  template <std::size_t>
  using Each = Var;
  template <class F, std::size_t... i>
  static constexpr bool takes(std::index_sequence<i...>) {
    return std::is_invocable<F&, Each<i>...>::value;
  }
  static Vars listed(Var result) { return {std::move(result)}; }
  static Vars listed(Vars results) { return results; }
  static void check_count(std::size_t given, std::size_t wanted);

  template <std::size_t n, class F, std::size_t... i>
  static Function spread(F function, std::index_sequence<i...>) {
    return [function = std::move(function)](const Vars& x) mutable {
      check_count(x.size(), n);
      return listed(function(x[i]...));
    };
  }
  struct Data;
  Owner<Data> data_;
};

}  // namespace xtape
