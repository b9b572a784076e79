/// Name lookup for lines. The check and the recording of a definition share it, so that both search the scopes in the
/// same order.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "model/definition/definition.hpp"
#include "xtape/op/op.hpp"

namespace xtape::model {

/// The kinds of things to which a name can refer. Locals (inputs, sizes, assigned names) are not among them. Callers
/// look up locals first.
enum class Meaning : std::uint8_t {
  unknown,
  parameter,
  weight,
  module,
  hyper,
  training,
  pi,
  definition,  ///< A block or an initialiser. The value is its name, as a text.
  function,
  require,
  is_named,
  scan,
  vmap,
  derivative,
  array,
  op  ///< An op, or a function of plain values.
};

inline constexpr std::size_t all_parameters = std::numeric_limits<std::size_t>::max();

struct VisibleNames {
  const Definition* home = nullptr;  ///< Its hyper-parameters are visible.
  const Block* block = nullptr;      ///< Its parameters, weights and modules are visible. Null for hyper-parameters.
  /// The number of visible parameters of the block. The default of a parameter may use only the parameters before it.
  std::size_t parameters = all_parameters;
  /// Whether weights, modules and `training` are visible. If not, blocks and initialisers are.
  bool recording = true;
  const Definition* functions = nullptr;  ///< Functions of this definition can be called. Null in blocks.
  const OpTable* ops = nullptr;

  Meaning of(const std::string& name) const;
  Meaning of_callee(const std::string& name) const;
  /// All names that `of` finds.
  std::vector<std::string> values() const;

  // Error messages with the nearest name. Both the check before a recording and the recording use them.
  /// Returns the error for a name that is neither in `locals` nor known to `of`.
  std::string unknown(const std::string& name, const std::vector<std::string>& locals) const;
  std::string unknown_callee(const std::string& name) const;
};

/// Returns "; did you mean 'axis'?", or all names if no name is near: "; it has x, axis, keepdims". Returns "" if there
/// are no names.
std::string nearest_or_all(const std::string& name, const std::vector<std::string>& names);
/// Returns the error for a keyword of a call of `op`, or "" if the keyword is valid.
std::string wrong_keyword(const Op& op, const std::string& name);
/// Returns the error for a text as a value of the attribute, or "" if the text is valid.
std::string wrong_text(const AttributeSpec& attribute, const std::string& text);
/// Returns whether values of the attribute may be texts.
bool takes_text(const AttributeSpec& attribute);

}  // namespace xtape::model
