/// The site of a node: the module of a model, and the line of a definition or program, where its call was recorded.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace xtape {

struct Op;

/// The line of the program that calls a function, taken as a defaulted last argument:
/// `Var f(const Vars& xs, Caller caller = Caller::here())`. (It uses the builtins behind std::source_location, which
/// C++17 lacks.)
struct Caller {
  const char* file = nullptr;  ///< The path given to the compiler, a string of static lifetime; null: unknown.
  std::int32_t line = 0;

#if defined(XTAPE_LIBRARY)  // empty in the library: functions pass on the caller that they were given
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
std::string to_string(const Caller& caller);  ///< "train.cpp, line 12", without the folder of the file; "" if unknown.

/// A module of a model, or a part of a program, that records nodes.
struct Scope {
  std::string path;   ///< The module's path: "h.0.attn". Empty outside definitions.
  std::string where;  ///< For errors: "gpt2.json, block 'attention'". Empty: errors give the program's line.
  /// The lines of the file in `where`, by the lines of sites, where these are lines of a copy of that file.
  std::map<std::int32_t, std::int32_t> lines = {};

  /// The line for errors.
  std::int32_t shown(std::int32_t line) const {
    const auto found = lines.find(line);
    return found == lines.end() ? line : found->second;
  }
};

/// Identifies a call. It is fixed when the call is recorded; gradient nodes and all passes copy it. Errors and profiles
/// report it, and random numbers are drawn by its key. The same call, recorded for another batch shape, has the same
/// key.
struct Site {
  std::shared_ptr<const Scope> scope;  ///< Never null in a recorded node.
  std::int32_t line = 0;               ///< The line of the definition's file; 0 outside definitions.
  std::int32_t occurrence = 0;         ///< The number of earlier calls of this op on this line of this module.
  std::uint64_t key = 0;               ///< A hash of path, line, op and occurrence.
  // These are for errors only and not part of the key:
  const Op* op = nullptr;  ///< The op that was called; it may be recorded as other ops.
  Caller caller = {};      ///< The calling line of the program; unknown if the scope has a `where`.
};
/// "h.0.attn (gpt2.json, block 'attention', line 24)", "h.0 (train.cpp, line 12)", "train.cpp, line 12"; "" if nothing
/// is known. For people: the format may change.
std::string to_string(const Site& site);

}  // namespace xtape
