/// A program that records a tape, as data: it is drawn from a seed, recorded any number of times, shrunk and printed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "xtape/tape.hpp"

namespace xtape::fuzz {

/// The elements of a source: floats and integers in [low, high], random flags. Each is a function of the seed, its
/// index and, for inputs, the number of the play.
struct Numbers {
  double low = -1, high = 1;
  std::uint64_t seed = 0;
  std::int64_t levels = 0;  ///< The number of different floats, to get ties; 0: equal floats are unlikely.
};

/// An output of a step.
struct Ref {
  int step = -1;
  int output = 0;
  friend bool operator==(Ref a, Ref b) { return a.step == b.step && a.output == b.output; }
  friend bool operator<(Ref a, Ref b) { return a.step != b.step ? a.step < b.step : a.output < b.output; }
};

/// An operand: an earlier value, or a literal.
using Term = std::variant<Ref, std::int64_t, double>;

struct Step;

/// The body of a checkpoint or scan. It can read its arguments and values outside.
struct Block {
  std::vector<int> arguments;  ///< For a scan: the slices, then the states.
  std::vector<Step> steps;
  std::vector<Ref> results;  ///< For a scan: the outputs of a step, then the next states.
};

/// A call of an op, or one of these:
/// - "input", "parameter", "constant": a source of type `type`, with `numbers`.
/// - "tokens": in mode predict, the input that has a past, of type `type`, [b, t]; attribute `capacity`.
/// - "checkpoint": the body on the operands.
/// - "scan": operands are sequences, first states and, if the attribute `valid` is true, the mask; attributes are
///   `axis`, `reverse`, `valid`, and the number of `sequences`. Its values are the stacked outputs and the last states.
/// - "grad": operands are outputs, inputs, and a cotangent for each output or none at all; attributes are the numbers
///   of `outputs` and `inputs`. Its values are the gradients of the inputs.
struct Step {
  int id = -1;  ///< Unique among the steps and arguments of the program.
  std::string op;
  std::vector<Term> operands = {};
  Attributes attributes = {};
  ValueType type = {};
  Numbers numbers = {};
  std::vector<Block> body = {};  ///< One block for a checkpoint or scan; else empty.

  bool is_source() const { return op == "input" || op == "parameter" || op == "constant" || op == "tokens"; }
};

struct Program {
  Mode mode = Mode::train;
  std::vector<Step> steps = {};
  std::vector<Ref> outputs = {};
  std::vector<std::pair<int, Ref>> carries = {};  ///< (input, the value that it gets at the next play).
};

/// The number of calls of each op, including those in bodies, without the sources.
std::map<std::string, std::size_t> ops_in(const std::vector<Step>& steps);
std::size_t calls_in(const std::vector<Step>& steps);  ///< Their sum.

}  // namespace xtape::fuzz
