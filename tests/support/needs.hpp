/// Requirements of a case that may be missing: TEST_CASE("…" * needs_no_sanitizer()). If a requirement is missing,
/// doctest skips the case. main.cpp counts it as skipped and prints the requirement.
#pragma once

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <utility>

#include "allocations.hpp"

namespace xtape {

class Needs {
 public:
  Needs(bool met, std::string what) : met_(met), what_(std::move(what)) {}

  /// doctest calls this function when the case is registered.
  void fill(doctest::detail::TestCase& test) const {
    if (met_) return;
    static std::set<std::string> kept;  // kept, because doctest stores a pointer
    test.m_skip = true;
    test.m_description = kept.insert(what_).first->c_str();
  }

 private:
  bool met_;
  std::string what_;
};

/// A sanitizer replaces malloc, and reserves terabytes of address space before any other code runs.
inline Needs needs_no_sanitizer() {
  return {allocations_are_counted(), "a build without a sanitizer"};
}

/// QEMU accepts limits of memory and does not set them, and a process that it forked cannot start threads.
inline Needs needs_no_emulator() {
  rlimit before{}, after{};
  getrlimit(RLIMIT_DATA, &before);
  rlimit lower = before;
  lower.rlim_cur = before.rlim_cur == RLIM_INFINITY ? rlim_t{1} << 40 : before.rlim_cur - 1;
  setrlimit(RLIMIT_DATA, &lower);
  getrlimit(RLIMIT_DATA, &after);
  setrlimit(RLIMIT_DATA, &before);
  return {after.rlim_cur == lower.rlim_cur, "a processor that is not emulated"};
}

/// Under an emulator, a shell cannot start programs of the emulated processor.
inline Needs needs_to_start_itself() {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  // The environment variable keeps the started program from starting another one.
  const std::string command = "XTAPE_IS_STARTED=1 '" + program + "' --count >/dev/null 2>&1";
  const bool met = std::getenv("XTAPE_IS_STARTED") != nullptr || std::system(command.c_str()) == 0;
  return {met, "a shell that can start it"};
}

}  // namespace xtape
