/// The names that a line may use: one order of scopes, for checking definitions and for recording them.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "definition.hpp"

namespace xtape::model {

/// What a name stands for. Locals (inputs, sizes, what is assigned) are their users' matter and come before all of it.
enum class Meaning : std::uint8_t { unknown, parameter, weight, module, hyper, training, function, require, scan, op };

inline constexpr std::size_t all_parameters = std::numeric_limits<std::size_t>::max();

struct VisibleNames {
  const Definition* home = nullptr;  ///< Whose hyper-parameters are seen.
  const Block* block = nullptr;      ///< Whose parameters, weights and modules; null among hyper-parameters.
  /// How many of the block's parameters: a default sees those before its own.
  std::size_t parameters = all_parameters;
  bool recording = true;                             ///< Weights, modules and ops are seen: not so in sizes and settings.
  const std::vector<Function>* functions = nullptr;  ///< That can be called; null in blocks.
  const OpTable* ops = nullptr;

  Meaning of(const std::string& name) const;
  Meaning of_callee(const std::string& name) const;
  /// All that `of` and `of_callee` know, for the nearest name.
  std::vector<std::string> values() const;
  std::vector<std::string> callees() const;
};

}  // namespace xtape::model
