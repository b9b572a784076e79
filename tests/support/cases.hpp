/// The test cases that have run in this program.
#pragma once

#include <string>
#include <vector>

/// Returns the titles of the test cases that have started, in order, including the current one.
const std::vector<std::string>& cases_started();
