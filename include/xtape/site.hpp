/// The site of a node: the module of a model and the line of a definition or program that recorded the call.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace xtape {

struct Op;

/// The line of the program that calls a function, passed as a defaulted last argument: `Var f(const Vars& xs, Caller
/// caller = Caller::here())`. (Caller uses the builtins behind std::source_location, which C++17 lacks.)
struct Caller {
  const char* file = nullptr;  ///< The path given to the compiler, a string of static lifetime. Null: unknown.
  std::int32_t line = 0;

#if defined(XTAPE_LIBRARY)  // empty in the library, where functions pass on the caller that they received
  static constexpr Caller here() {
    return {};
  }
#else
  static constexpr Caller here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
#endif
  bool known() const {
    return file != nullptr;
  }
};
std::string to_string(const Caller& caller);  ///< "train.cpp, line 12", without the folder of the file. "" if unknown.

/// A module of a model, or a part of a program, that records nodes.
struct Scope {
  std::string path;   ///< The path of the module of a definition, or of Parameters in nn: "h.0.attn". Else empty.
  std::string where;  ///< For errors: "gpt2.json, block 'attention'". If empty, errors give the program's line.
  /// If the lines of sites refer to a copy of the file in `where`: for each line of the copy, the line of the original.
  std::map<std::int32_t, std::int32_t> lines = {};

  /// Returns the line to show in errors.
  std::int32_t shown(std::int32_t line) const {
    const auto found = lines.find(line);
    return found == lines.end() ? line : found->second;
  }
};

/// Identifies a call. Recording the call determines its site. Gradient nodes and all passes copy it. Errors and
/// profiles report it, and its key selects the random stream. The same call recorded for another batch shape has the
/// same key.
struct Site {
  std::shared_ptr<const Scope> scope;  ///< Never null in a recorded node.
  std::int32_t line = 0;               ///< The line of the definition's file. 0 outside definitions.
  std::int32_t occurrence = 0;         ///< The number of earlier calls of this op on this line of this module.
  std::uint64_t key = 0;               ///< A hash of path, line, op and occurrence.
  // The following fields are not part of the key.
  const Op* op = nullptr;  ///< The op that was called, also for its literals. It may be recorded as other ops.
  Caller caller = {};      ///< The calling line of the program. Unknown if the scope has a `where`.
};
/// "h.0.attn (gpt2.json, block 'attention', line 24)", "h.0 (train.cpp, line 12)", "train.cpp, line 12", or "" if
/// nothing is known. The format is for people and may change.
std::string to_string(const Site& site);

}  // namespace xtape
