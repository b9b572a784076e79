/// A program for tapes as data: drawn from a seed, recorded any number of times, made smaller, and printed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "xtape/tape.hpp"

namespace xtape::fuzz {

/// The elements of a source: floats and integers within [low, high], flags at random. Each is a function of the seed,
/// its index, and (for what is fed) the number of the play.
struct Numbers {
  double low = -1, high = 1;
  std::uint64_t seed = 0;
  std::int64_t levels = 0;  ///< How many different floats there are, for ties; 0: no two are likely to be equal.
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

/// The body of a checkpoint or scan. It sees its arguments and what stands outside.
struct Block {
  std::vector<int> arguments;  ///< Of a scan: the slices, then the states.
  std::vector<Step> steps;
  std::vector<Ref> results;  ///< Of a scan: the outputs of a step, then the next states.
};

/// A call of an op, or one of these:
/// - "input", "parameter", "constant": a source of type `type`, with `numbers`.
/// - "tokens": in mode predict, the input that has a past, of type `type`, [b, t]; attribute `capacity`.
/// - "checkpoint": the body on the operands.
/// - "scan": operands are sequences, first states, and the mask where the attribute `real` is true; attributes `axis`,
///   `reverse`, `real`, and `sequences`, the number of those. Gives the stacked outputs, then the last states.
/// - "grad": operands are outputs, inputs, and a cotangent for each output or none; attributes `outputs` and `inputs`
///   are the numbers of those. Gives a gradient for each input.
struct Step {
  int id = -1;  ///< Of no other step or argument of the program.
  std::string op;
  std::vector<Term> operands = {};
  Attributes attributes = {};
  ValueType type = {};
  Numbers numbers = {};
  std::vector<Block> body = {};  ///< One block, or none.

  bool is_source() const { return op == "input" || op == "parameter" || op == "constant" || op == "tokens"; }
};

struct Program {
  Mode mode = Mode::train;
  std::vector<Step> steps = {};
  std::vector<Ref> outputs = {};
  std::vector<std::pair<int, Ref>> carries = {};  ///< Of an input and the value that it takes at the next play.
};

/// How often each op is called, in bodies too; without the sources.
std::map<std::string, std::size_t> ops_in(const std::vector<Step>& steps);
std::size_t calls_in(const std::vector<Step>& steps);  ///< Their sum.

}  // namespace xtape::fuzz
