/// Nestings of transformations of functions.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "random.hpp"
#include "xtape/tape.hpp"

namespace xtape::fuzz {

using Mapping = std::function<Vars(const Vars&)>;

/// How many examples a mapped function gets.
constexpr std::int64_t batch = 2;

/// A way of writing a transformation of a function.
using Writing = Vars (*)(const Mapping& f, const Vars& x, std::uint64_t seed);

struct Transformation {
  const char* name;
  bool maps;  ///< Takes and gives a batch of what the function takes and gives.
  std::vector<Writing> writings;
};

/// A nesting of transformations, from the inside out.
struct Nesting {
  std::vector<const Transformation*> levels;

  static Nesting drawn(Random& random);
  std::string name() const;
  /// The nesting of `f`, each level in a drawn writing; the first writing of each if `random` is null.
  Mapping of(Mapping f, Random* random) const;
  /// How many levels map.
  int maps() const;
};

/// Whether a node draws random numbers, which differ from call to call, or has so many axes that it cannot be mapped.
bool draws_or_is_full(const Tape& tape, std::size_t more_axes);
/// `array` for each of a batch, each example a little larger than the one before.
Array spread(const Array& array, double by);

}  // namespace xtape::fuzz
