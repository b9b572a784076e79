// The last test cases of the ops suite, because doctest orders files by path. They check what all other cases have
// covered.
#include <doctest/doctest.h>

#include <algorithm>

#include "cases.hpp"
#include "gradient_coverage.hpp"
#include "xtape/op/op.hpp"

using namespace xtape;

TEST_CASE("the suite has a case titled after every op") {
  std::string missing;
  for (const auto& row : builtin_ops().ops()) {
    const std::string start = "op " + row.first + ":";
    const auto& titles = cases_started();
    const bool named = std::any_of(titles.begin(), titles.end(), [&](const std::string& title) {
      return title.compare(0, start.size(), start) == 0;
    });
    if (!named) missing += " " + row.first;
  }
  INFO("without a case titled 'op NAME: …' (run the whole suite):" << missing);
  CHECK(missing.empty());
}

TEST_CASE("the suite checks the gradient of every differentiable op") {
  std::string missing;
  for (const auto& [name, row] : builtin_ops().ops()) {
    // An op that is always recorded as other ops has no node through which a cotangent could flow.
    const bool leaves_no_node = row->record && !row->lowering.kernel && !row->lowering.tile && !row->lowering.view;
    const bool has_gradient = row->differentiable && !leaves_no_node && !row->inputs.empty() && !row->is_source();
    if (has_gradient && gradient_checked_ops().count(name) == 0) missing += " " + name;
  }
  INFO("without a gradient check that passed (run the whole suite):" << missing);
  CHECK(missing.empty());
}
