/// The errors that xtape throws. A failed call leaves the tape, the store and the file it worked on as they were.
#pragma once

#include <stdexcept>
#include <string>

namespace xtape {

/// The base of every error. `what()` names the op (or the definition's file, block and line), what was received, and
/// what would be right.
class Error : public std::runtime_error {
 public:
  /// Control characters in `message` other than line ends and tabs, and bytes that are not UTF-8, are written as \x1B:
  /// messages quote data, and data must not steer the terminal that shows them.
  explicit Error(const std::string& message);
};

/// Shapes that do not fit the op.
class ShapeError : public Error {
 public:
  using Error::Error;
};

/// Dtypes that do not fit the op, or a mix of float widths.
class DtypeError : public Error {
 public:
  using Error::Error;
};

/// A var that is empty, stale, or of another tape.
class HandleError : public Error {
 public:
  using Error::Error;
};

/// A definition, recipe or expression that is wrong. The text carries file, block, line and a caret.
class DefinitionError : public Error {
 public:
  using Error::Error;
};

/// A file that cannot be read or written, or whose contents are not what they claim to be.
class FileError : public Error {
 public:
  using Error::Error;
};

}  // namespace xtape
