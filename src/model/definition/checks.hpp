/// Checks of a definition: misspelt sizes, and what no line uses.
#pragma once

#include <string>
#include <vector>

#include "model/definition/definition.hpp"
#include "model/language/visible_names.hpp"
#include "model/recording/module.hpp"

namespace xtape::model {

// Checks the names of sizes in the types of inputs, because a misspelt name would silently declare a new size.

/// Returns whether `name` is probably a misspelling of `meant`: one letter is missing or extra, two adjacent letters
/// are swapped, or (only if `replaced`) one letter is replaced by another letter. Returns false for names of fewer than
/// three characters. Also returns false if the names differ in a word of one letter, such as q_len and k_len, because
/// the difference is intended.
bool is_slip(const std::string& name, const std::string& meant, bool replaced);

/// Throws DefinitionError if a size occurs only once in the types, occurs in no line, and has a name that is probably a
/// misspelling. The intended name may be a visible name (parameter, hyper-parameter) or a size that occurs more often.
void check_sizes(const std::vector<Input>& inputs, const Computation& computation, const VisibleNames& visible);

// Finds unused inputs, overrides without effect, and weights and modules that no line mentions. Such weights would be
// stored and trained without effect.

/// Throws DefinitionError for the first module or weight that no line of the model mentions.
void check_usage(const Module& root, const Definition& definition);

/// Throws DefinitionError for the first unused input of a block or function. Used files are checked too. An input
/// counts as used if a line mentions it, or if its type declares a size that a line mentions. An input whose name
/// begins with _ may be unused. It exists because another block that can replace this block reads the input.
void check_inputs(const Definition& definition);

/// Throws DefinitionError if an override of a hyper-parameter of the definition at `path` has no effect (see
/// check_names). Programs that read hyper-parameters of their own may override any.
void check_overrides(const std::string& path, const std::vector<std::pair<std::string, std::string>>& overrides);

}  // namespace xtape::model
