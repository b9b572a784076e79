/// The error of a call that a test records begins with the test's file and line. This header is included first in every
/// file of the suites that record (see tests/meson.build). It removes the location if it is the line of the check
/// itself, so that tests need not state it, and a wrong location fails the test.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "xtape/error.hpp"
#include "xtape/site.hpp"

namespace xtape::test {

/// Runs `body`; rethrows an E of the form "PLACE: TEXT" as "TEXT".
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
#define CHECK_THROWS_WITH_AS(expression, text, type)                                                                  \
  DOCTEST_CHECK_THROWS_WITH_AS(                                                                                       \
      (xtape::test::without_place<type>(xtape::Caller::here(), [&] { static_cast<void>(expression); })), text, type)
#undef CHECK_THROWS_WITH
#define CHECK_THROWS_WITH(expression, text) CHECK_THROWS_WITH_AS(expression, text, xtape::Error)
