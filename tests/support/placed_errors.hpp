/// Checks that the error of a call that a test records begins with the test's file and line. Every file of the suites
/// that record includes this header first (see tests/meson.build). The header removes the location if it is the line of
/// the check itself, so tests need not state it. A wrong location makes the test fail.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "xtape/error.hpp"
#include "xtape/site.hpp"

namespace xtape::test {

/// Runs `body`. If it throws an E of the form "PLACE: TEXT", throws an E with the text "TEXT" instead.
template <class E, class Body>
void without_place(const Caller& caller, const Body& body) {
  try {
    body();
  } catch (const E& error) {
    const std::string text = error.what(), place = to_string(caller) + ": ";
    if (text.compare(0, place.size(), place) == 0) throw E(text.substr(place.size()));
    throw;
  }
}

}  // namespace xtape::test

#undef CHECK_THROWS_WITH_AS
#define CHECK_THROWS_WITH_AS(expression, text, type) \
  DOCTEST_CHECK_THROWS_WITH_AS(                      \
      (xtape::test::without_place<type>(xtape::Caller::here(), [&] { static_cast<void>(expression); })), text, type)
#undef CHECK_THROWS_WITH
#define CHECK_THROWS_WITH(expression, text) CHECK_THROWS_WITH_AS(expression, text, xtape::Error)
