/// The errors that xtape throws. A failed call leaves the tape, the store and the file it worked on as they were.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

namespace xtape {

/// The base of every error. `what()` names the op and its place (the definition's file, block and line, or the program's
/// file and line), what was received, and what would be right.
class Error : public std::runtime_error {
 public:
  /// Control characters in `message` other than line ends and tabs, and bytes that are not UTF-8, are written as \x1B:
  /// messages quote data, and data must not steer the terminal that shows them.
  explicit Error(const std::string& message);
  const char* what() const noexcept override { return longer_ ? longer_->c_str() : std::runtime_error::what(); }

  // Whoever knows more of a failed call than the thrower adds it on the way out, and throws on: the error keeps its type.

  /// Puts "OP: " in front of the text, unless it begins so or a place stands there.
  void name_op(const std::string& op) {
    if (!placed_ && std::string(what()).compare(0, op.size() + 1, op + ":") != 0) put_in_front(op);
  }
  /// Puts "PLACE: " in front of the text, unless a place stands there: the innermost counts. An empty place is none.
  void name_place(const std::string& place) {
    if (placed_ || place.empty()) return;
    put_in_front(place);
    placed_ = true;
  }

 private:
  void put_in_front(const std::string& name);

  std::shared_ptr<const std::string> longer_;  // shared, since copying an exception must not throw
  bool placed_ = false;
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
