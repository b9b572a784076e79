/// Returns the texts of errors.
#pragma once

#include <string>

#include "xtape/error.hpp"

namespace xtape::test {

/// Returns the text of the error that `action` throws, or an empty text if it throws none.
template <class Action>
std::string error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace xtape::test
