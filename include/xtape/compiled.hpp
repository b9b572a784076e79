/// Functions of arrays. The first call with arguments of some types records and plans the function. Later calls with
/// the same types only play it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "xtape/literal.hpp"
#include "xtape/player.hpp"

namespace xtape {

/// An argument of a function of arrays: a number, or anything that converts to an ArrayView. A real number becomes a
/// scalar of the default dtype of the function's tapes, an integer becomes an int64 scalar, a bool becomes a bool
/// scalar.
class ArrayOrNumber {
 public:
  template <class T, class = std::enable_if_t<std::is_arithmetic<T>::value>>
  ArrayOrNumber(T number) : number_(Literal(number)) {}  // NOLINT: converts by intent
  template <class T,
            class = std::enable_if_t<!std::is_arithmetic<std::decay_t<T>>::value &&
                                     std::is_convertible<T&&, ArrayView>::value>,
            class = void>
  ArrayOrNumber(T&& array) : array_(std::forward<T>(array)) {}  // NOLINT: converts by intent

  /// Returns the array, or an array of the number. `real` is the dtype of a real number. Errors are those of ArrayView.
  ArrayView view(Dtype real) const;

 private:
  ArrayView array_;
  std::optional<Literal> number_;
};

/// The arguments of a function of arrays. Converts from a list of arrays and numbers, and from a container of arrays.
class ArraysOrNumbers {
 public:
  ArraysOrNumbers(std::initializer_list<ArrayOrNumber> list) : list_(list) {}   // NOLINT: converts by intent
  ArraysOrNumbers(std::vector<ArrayOrNumber> list) : list_(std::move(list)) {}  // NOLINT: the same
  template <class List, class = std::enable_if_t<std::is_convertible<typename List::value_type, ArrayView>::value>>
  ArraysOrNumbers(const List& arrays) : list_(arrays.begin(), arrays.end()) {}  // NOLINT: the same

  const std::vector<ArrayOrNumber>& list() const { return list_; }

 private:
  std::vector<ArrayOrNumber> list_;
};

/// A function of arrays, like the result of jax.jit. The first call with arrays of some types records the function on a
/// new tape and plans it. Later calls with the same types only play. Each combination of types has its own plan, which
/// lives as long as the Compiled object. Every call reads the arrays of parameters (Tape::parameter). Constants are
/// copied when the function is recorded. A number that the function captures becomes a constant. A number that changes
/// between calls must therefore be an argument.
///
///   Compiled step([&](Var x, Var y) { return mean(square(matmul(x, x.tape().parameter("w", w)) - y)); });
///   double loss = step({batch, labels})[0]();
///
/// Only one thread at a time may use a Compiled object. A copy shares the plans but has its own players, so each thread
/// can use a copy. Only one copy at a time records the function.
class Compiled {
 public:
  using Function = std::function<Vars(const Vars&)>;

  /// `function` takes one to eight vars, or Vars, and returns a Var or Vars. It is called once for each plan, with
  /// inputs of a new tape. The tape has the mode, default dtype and ops of `like`. Carries of `options` are not
  /// supported. Throws Error if the function is empty.
  template <class F, class = std::enable_if_t<!std::is_same<std::decay_t<F>, Compiled>::value>>
  explicit Compiled(F function, const PlayerOptions& options = {}, const Tape& like = Tape())
      : Compiled(Recorded{}, function_of(std::move(function)), options, like) {}
  Compiled(const Compiled& other);
  Compiled& operator=(const Compiled& other) { return *this = Compiled(other); }
  Compiled(Compiled&&) noexcept = default;  ///< Using a moved-from object throws HandleError.
  Compiled& operator=(Compiled&&) noexcept = default;

  /// Returns the results for these arguments, as dense views that are valid until the next call. Each call is a new
  /// random step. Throws Error if the options have carries. Errors of recording, Player and Player::play propagate.
  std::vector<ArrayView> operator()(const ArraysOrNumbers& arguments, Caller caller = Caller::here());

  std::size_t plans() const;   ///< The number of plans of all copies.
  const Player& last() const;  ///< The player of the last call, for its plan. Throws Error before the first call.
  std::uint64_t step() const;  ///< The random step of the next call. Initially 0.
  void set_step(std::uint64_t random_step);
  void clear();  ///< Forgets all plans. Copies keep the plans that they have played.

  /// Converts a function of one to eight vars, or of Vars, to a function of Vars. Throws Error if it is empty: a null
  /// pointer, or a std::function without a target.
  template <std::size_t n = 1, class F>
  static Function function_of(F function) {
    if constexpr (std::is_constructible<F, std::nullptr_t>::value) check_given(static_cast<bool>(function));
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
  static void check_given(bool given);
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
