/// The exceptions that xtape throws: all derive from Error, except std::bad_alloc. Unless its documentation says
/// otherwise, a call that throws leaves the tape, the store and the file that it worked on unchanged.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace xtape {

class Shape;

/// The base of all errors. `what()` names the op and the location of the call (file, block and line of the definition,
/// or file and line of the program), what was received, and what would be right. Copying an Error does not throw.
class Error : public std::runtime_error {
 public:
  /// Writes control characters of `message` other than line feeds and tabs, and bytes that are not UTF-8, as \x1B.
  /// Messages quote data, and data must not control the terminal that shows them.
  explicit Error(const std::string& message);
  const char* what() const noexcept override;

  // The same as data, for programs. What is unknown is empty or 0.
  const std::string& op() const;             ///< The op that failed: "matmul".
  const std::string& file() const;           ///< The file of the program or definition.
  std::int32_t line() const;                 ///< The line in that file, from 1.
  const std::vector<Shape>& shapes() const;  ///< The shapes of the operands, if an op refused to be recorded.

  // A caller that knows more about the failed call catches the error by reference, adds the op or the location, and
  // rethrows with `throw;`, so that the error keeps its type.

  /// Prepends "OP: " to the text, unless the text begins with it or has a location already.
  void name_op(const std::string& op);
  /// Prepends "PLACE: " to the text, unless it has a location already: the innermost one stays. Ignores an empty
  /// `location`. `file` and `line` are what the location says.
  void name_location(const std::string& location, const std::string& file = {}, std::int32_t line = 0);
  /// Sets `file` and `line`, if the text names them already.
  void set_place(const std::string& file, std::int32_t line);
  /// Sets the shapes of the operands, unless the text has a location already.
  void set_shapes(const std::vector<Shape>& shapes);

 private:
  struct Facts;
  Facts& facts();
  void prepend(const std::string& name);

  std::shared_ptr<Facts> facts_;  // shared because copying an exception must not throw
};

/// Shapes that the op does not take, or that no array can have.
class ShapeError : public Error {
 public:
  using Error::Error;
};

/// Dtypes that the op does not take, a mix of float widths, or a literal that its dtype cannot hold.
class DtypeError : public Error {
 public:
  using Error::Error;
};

/// A var that is empty, stale, or belongs to another tape; a number that no node or value of the tape has; an object
/// that was moved from.
class HandleError : public Error {
 public:
  using Error::Error;
};

/// A mistake in a definition, recipe or expression. The text has file, block, line and a caret.
class DefinitionError : public Error {
 public:
  using Error::Error;
};

/// A process of a distributed training that cannot be reached, or does not answer in time.
class CommunicationError : public Error {
 public:
  using Error::Error;
};

/// A file that cannot be read or written, or whose contents are damaged or of the wrong format.
class FileError : public Error {
 public:
  using Error::Error;
};

}  // namespace xtape
