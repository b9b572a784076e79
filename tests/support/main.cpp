// The main function of doctest. The last line is "N passed, N failed", with ", N skipped" if requirements of cases are
// missing. All cases count as one skipped case if the processor lacks the instruction set named by XTAPE_ISA or
// XTAPE_TEST_NEEDS, or has no wider instruction set than the one named by XTAPE_TEST_REPEATS. A filter that selects no
// test case is an error. A case without assertions is also an error.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/system/instruction_set.hpp"
#include "cases.hpp"

namespace {
std::vector<std::string> names;
unsigned passed = 0, failed = 0, skipped = 0;

struct CountCases : doctest::IReporter {
  explicit CountCases(const doctest::ContextOptions&) {}
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats& run) override {
    failed += run.numTestCasesFailed;
    passed = run.numTestCasesPassingFilters - failed;
  }
  void test_case_start(const doctest::TestCaseData& test) override { names.emplace_back(test.m_name); }
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
    if (stats.failure_flags != 0 || stats.numAssertsCurrentTest > 0) return;
    ++failed;
    std::printf("FAILED: %s: it asserts nothing\n", names.back().c_str());
  }
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  // doctest's own number also counts cases that a filter excludes.
  void test_case_skipped(const doctest::TestCaseData& test) override {
    if (!test.m_skip || test.m_description == nullptr) return;
    ++skipped;
    std::printf("SKIPPED: %s: it needs %s\n", test.m_name, test.m_description);
  }
};
REGISTER_LISTENER("count_cases", 1, CountCases);
/// Returns the instruction set with this name.
xtape::InstructionSet set_named(const std::string& name) {
  using enum xtape::InstructionSet;
  for (const xtape::InstructionSet set : {neon, dotprod, i8mm, avx2, avx512, avx512_bf16, amx})
    if (name == xtape::name_of(set)) return set;
  return baseline;
}
}  // namespace

const std::vector<std::string>& cases_started() {
  return names;
}

int main(int argc, char** argv) {
  for (const char* variable : {"XTAPE_ISA", "XTAPE_TEST_NEEDS"})
    if (const char* needed = std::getenv(variable); needed != nullptr && xtape::instruction_set() < set_named(needed)) {
      std::printf("SKIPPED: all cases: they need a processor with %s\n0 passed, 0 failed, 1 skipped\n", needed);
      return 0;
    }
  if (const char* repeated = std::getenv("XTAPE_TEST_REPEATS");
      repeated != nullptr && xtape::processor_instruction_set() <= set_named(repeated)) {
    std::printf("SKIPPED: all cases: they need a processor with more than %s\n0 passed, 0 failed, 1 skipped\n",
                repeated);
    return 0;
  }
  doctest::Context context(argc, argv);
  context.run();
  if (context.shouldExit()) return 0;
  if (names.empty() && skipped == 0) {
    std::fprintf(stderr, "no test case ran: check the filter\n");
    ++failed;
  }
  std::printf("%u passed, %u failed", passed, failed);
  if (skipped > 0) std::printf(", %u skipped", skipped);
  std::printf("\n");
  return failed == 0 ? 0 : 1;
}
