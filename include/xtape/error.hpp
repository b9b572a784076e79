/// The exceptions of xtape. All derive from Error, except std::bad_alloc. Unless its documentation says otherwise, a
/// call that throws leaves its tape, store and file unchanged.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace xtape {

class Shape;

/// The base of all errors. `what()` contains the op and the location of the call (file, block and line of the
/// definition, or file and line of the program), what was received, and what would be right. Copying an Error does not
/// throw.
class Error : public std::runtime_error {
 public:
  /// Escapes parts of `message` in the form \x1B: bytes that are not UTF-8, and control characters other than line
  /// feeds and tabs. Messages quote data, which must not control the terminal that displays them.
  explicit Error(const std::string& message);
  const char* what() const noexcept override;

  // The same information as data, for programs. Unknown values are empty or 0.
  const std::string& op() const;             ///< The op that failed: "matmul".
  const std::string& file() const;           ///< The file of the program or definition.
  std::int32_t line() const;                 ///< The line in that file, from 1.
  const std::vector<Shape>& shapes() const;  ///< The shapes of the operands, if recording an op failed.

  // A caller with more information about the failed call catches the error by reference, adds the op or the location,
  // and rethrows with `throw;`. The error then keeps its type.

  /// Prepends "OP: " to the text, unless the text begins with it or already has a location.
  void name_op(const std::string& op);
  /// Prepends "PLACE: " to the text, unless the text already has a location. So the innermost location remains. Ignores
  /// an empty `location`. `file` and `line` are those of the location.
  void name_location(const std::string& location, const std::string& file = {}, std::int32_t line = 0);
  /// Sets `file` and `line` if the text already contains them.
  void set_place(const std::string& file, std::int32_t line);
  /// Sets the shapes of the operands, unless the text already has a location.
  void set_shapes(const std::vector<Shape>& shapes);

 private:
  struct Facts;
  Facts& facts();
  void prepend(const std::string& name);

  std::shared_ptr<Facts> facts_;  // shared because copying an exception must not throw
};

/// The op does not accept a shape, or no array can have it.
class ShapeError : public Error {
 public:
  using Error::Error;
};

/// The op does not accept a dtype, float widths are mixed, or a dtype cannot hold a literal.
class DtypeError : public Error {
 public:
  using Error::Error;
};

/// A handle that cannot be used: a var that is empty, is stale or belongs to another tape, an index that refers to no
/// node or value of the tape, or an object that was moved from.
class HandleError : public Error {
 public:
  using Error::Error;
};

/// A mistake in a definition, recipe or expression. The text contains file, block, line and a caret.
class DefinitionError : public Error {
 public:
  using Error::Error;
};

/// A process of a distributed training cannot be reached, or does not answer in time.
class CommunicationError : public Error {
 public:
  using Error::Error;
};

/// A file cannot be read or written, or its contents are damaged or in the wrong format.
class FileError : public Error {
 public:
  using Error::Error;
};

}  // namespace xtape
