/// The test cases that have run in this program.
#pragma once

#include <string>
#include <vector>

/// The titles of the test cases that have started, in order, the present one included.
const std::vector<std::string>& cases_started();
