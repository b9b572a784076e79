#include <doctest/doctest.h>
#include <omp.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "needs.hpp"
#include "process_memory.hpp"
#include "thread_count.hpp"
#include "xtape/array.hpp"

using namespace xtape;

namespace {
/// What `work` throws in a process in which this resource has the limit; "nothing" if it throws nothing.
template <class Work>
std::string thrown_with(int resource, rlim_t most, const Work& work) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    struct rlimit limit {};
    limit.rlim_cur = limit.rlim_max = most;
    std::string said = "nothing";
    if (setrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0) said = "no limit";
    try {
      work();
    } catch (const Error& error) {
      said = error.what();
    }
    [[maybe_unused]] const ssize_t written = write(ends[1], said.data(), said.size());
    _exit(0);
  }
  close(ends[1]);
  std::string said(4096, '\0');
  const ssize_t count = read(ends[0], said.data(), said.size());
  close(ends[0]);
  said.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  waitpid(child, nullptr, 0);
  return said;
}

/// The address space that this process has.
rlim_t address_space() {
  std::size_t pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  REQUIRE(fscanf(file, "%zu", &pages) == 1);
  fclose(file);
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}
bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
constexpr rlim_t mebibyte = rlim_t{1} << 20;
}  // namespace

TEST_CASE("a number of threads is checked, and the threads are there") {
  CHECK(thread_count(1) == 1);
  CHECK(thread_count(7) == 7);
  CHECK(thread_count(0) == omp_get_max_threads());
  CHECK_THROWS_WITH_AS(thread_count(-1), "the number of threads must be 0 to 4096, not -1", Error);
  CHECK_THROWS_WITH_AS(thread_count(1000000), "the number of threads must be 0 to 4096, not 1000000", Error);
}

TEST_CASE("threads for whose stacks there is no room are an error that says how many there are" *
          needs_no_sanitizer()) {
  const std::string said = thrown_with(RLIMIT_AS, address_space() + 40 * mebibyte, [] { thread_count(1000); });
  CHECK_MESSAGE(holds(said, "cannot start 1000 threads: the system gives "), said);
  CHECK_MESSAGE(holds(said, " are left (ulimit -v: "), said);
}

TEST_CASE("what is left of a limit is named" * needs_no_sanitizer()) {
  const auto left = [] { throw Error(memory_left_text()); };
  const std::string space = thrown_with(RLIMIT_AS, address_space() + 10 * mebibyte, left);
  CHECK_MESSAGE(holds(space, " MiB are left (ulimit -v: "), space);
  const std::string data = thrown_with(RLIMIT_DATA, mebibyte, left);
  CHECK_MESSAGE(holds(data, " are left (ulimit -d: 1.00 MiB)"), data);
  const std::string array = thrown_with(RLIMIT_AS, address_space() + 10 * mebibyte,
                                        [] { Array(Dtype::float32, {1 << 24}); });
  CHECK_MESSAGE(holds(array, "out of memory: an array of 67108864 bytes, and "), array);
  const std::string needed = thrown_with(RLIMIT_AS, address_space() + 10 * mebibyte,
                                         [] { require_memory_left(std::size_t{1} << 30, "the text"); });
  CHECK_MESSAGE(holds(needed, "out of memory: the text takes 1.00 GiB, and "), needed);
  CHECK_NOTHROW(require_memory_left(1, "a byte"));
  CHECK(memory_left().bytes > 0);
  CHECK(memory_left().bytes <= memory_limit());
}
