/// Where a call was recorded: in which module of a model, on which line of a definition or of a program.
#pragma once

#if defined(XTAPE_LAYER) && XTAPE_LAYER < 2
#error "this layer of xtape may not see the tape layer"
#endif

#include <cstdint>
#include <memory>
#include <string>

namespace xtape {

struct Op;

/// The line of a program on which a function is called, for a defaulted last argument to take:
/// `Var f(const Vars& xs, Caller caller = Caller::here())`. (The builtins are what std::source_location is made of;
/// C++17 and clang before 16 have no other.)
struct Caller {
  const char* file = nullptr;  ///< As the compiler was given it, for as long as the program lives; null: not known.
  std::int32_t line = 0;

#if defined(XTAPE_LAYER)  // the library's own lines say nothing to its users: their program's stand further out
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
std::string to_string(
    const Caller& caller);  ///< "train.cpp, line 12", without the file's folder; "" if it is not known.

/// A module of a model, or a stretch of a program, in which nodes are recorded.
struct Scope {
  std::string path;   ///< The module's path: "h.0.attn". Empty outside definitions.
  std::string where;  ///< For errors: "gpt2.json, block 'attention'". Empty outside definitions.
};

/// Where a call stands. Fixed at recording, copied to the gradient nodes and by every pass: it keys errors, profiles,
/// random numbers and caches. The same call in a tape of another batch shape has the same site.
struct Site {
  std::shared_ptr<const Scope> scope;  ///< Never null in a recorded node.
  std::int32_t line = 0;               ///< The line in the definition's file; 0 outside definitions.
  std::int32_t occurrence = 0;         ///< Counts the calls of one op on one line of one module.
  std::uint64_t key = 0;               ///< A hash of path, line, op and occurrence.
  // These serve errors alone, and are no part of the key:
  const Op* op = nullptr;  ///< What was called, which may have been recorded as other ops.
  Caller caller = {};      ///< Where the program called it; not known where the scope says `where`.
};
/// "h.0.attn (gpt2.json, block 'attention', line 24)", "h.0 (train.cpp, line 12)", "train.cpp, line 12"; "" if nothing
/// is known.
std::string to_string(const Site& site);

}  // namespace xtape
