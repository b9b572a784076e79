/// Name lookup for lines. Checking and recording a definition share it, so that both use the same order of scopes.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "definition.hpp"
#include "xtape/op/op.hpp"

namespace xtape::model {

/// What a name refers to. Callers look up locals (inputs, sizes, assigned names) themselves, before anything else.
enum class Meaning : std::uint8_t {
  unknown,
  parameter,
  weight,
  module,
  hyper,
  training,
  pi,
  function,
  require,
  is_named,
  scan,
  vmap,
  derivative,
  op
};

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
  /// All names that `of` finds.
  std::vector<std::string> values() const;

  // What is wrong, with the nearest name: in checks before a recording, and in the recording for what only it knows.
  /// The error for a name that neither `of` finds nor the `locals` have.
  std::string unknown(const std::string& name, const std::vector<std::string>& locals) const;
  std::string unknown_callee(const std::string& name) const;
};

/// "; did you mean 'axis'?" or, if no name is near, all: "; it has x, axis, keepdims"; "" if there is none.
std::string nearest_or_all(const std::string& name, const std::vector<std::string>& names);
/// What is wrong with a keyword of a call of `op`; "" if nothing is.
std::string wrong_keyword(const Op& op, const std::string& name);
/// What is wrong with a text as a value of the attribute; "" if nothing is.
std::string wrong_text(const AttributeSpec& attribute, const std::string& text);
/// Whether values of the attribute may be texts.
bool takes_text(const AttributeSpec& attribute);

}  // namespace xtape::model
