/// Name lookup for lines. Checking and recording a definition share it, so that both use the same order of scopes.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "definition.hpp"

namespace xtape::model {

/// What a name refers to. Callers look up locals (inputs, sizes, assigned names) themselves, before anything else.
enum class Meaning : std::uint8_t { unknown, parameter, weight, module, hyper, training, function, require, scan, op };

inline constexpr std::size_t all_parameters = std::numeric_limits<std::size_t>::max();

struct VisibleNames {
  const Definition* home = nullptr;  ///< Its hyper-parameters are visible.
  const Block* block = nullptr;      ///< Its parameters, weights and modules are visible; null in hyper-parameters.
  /// How many of the block's parameters are visible: the default of a parameter may use the ones before it.
  std::size_t parameters = all_parameters;
  bool recording = true;                  ///< Weights, modules and `training` are visible; false in sizes and settings.
  const Definition* functions = nullptr;  ///< Its functions can be called; null in blocks.
  const OpTable* ops = nullptr;

  Meaning of(const std::string& name) const;
  Meaning of_callee(const std::string& name) const;
  /// All names that `of` and `of_callee` find, to suggest the nearest one in errors.
  std::vector<std::string> values() const;
  std::vector<std::string> callees() const;
};

}  // namespace xtape::model
