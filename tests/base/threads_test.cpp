#include "base/threads/threads.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "base/system/process_memory.hpp"
#include "base/system/usable_cores.hpp"
#include "needs.hpp"
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

/// Counts to `count` on these threads, each element once; returns the sum of what each element has.
std::int64_t counted(int threads, std::int64_t count) {
  std::vector<std::int64_t> times(static_cast<std::size_t>(count));
  parallel_for(threads, count, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) ++times[static_cast<std::size_t>(i)];
  });
  for (const std::int64_t each : times)
    if (each != 1) return -1;
  return std::accumulate(times.begin(), times.end(), std::int64_t{0});
}
constexpr rlim_t mebibyte = rlim_t{1} << 20;
}  // namespace

TEST_CASE("a number of threads is checked, and the threads are there") {
  CHECK(thread_count(1) == 1);
  CHECK(thread_count(7) == 7);
  CHECK(thread_count(0) == default_threads().count);
  CHECK_THROWS_WITH_AS(thread_count(-1), "the number of threads must be 0 to 4096, not -1", Error);
  CHECK_THROWS_WITH_AS(thread_count(1000000), "the number of threads must be 0 to 4096, not 1000000", Error);
}

TEST_CASE("threads for whose stacks there is no room are an error that says how many there are" * needs_no_sanitizer() *
          needs_no_emulator()) {
  const std::string said = thrown_with(RLIMIT_AS, address_space() + 40 * mebibyte, [] { thread_count(1000); });
  CHECK_MESSAGE(holds(said, "cannot start 1000 threads: the system gives "), said);
  CHECK_MESSAGE(holds(said, " are left (ulimit -v: "), said);
}

TEST_CASE("what is left of a limit is named" * needs_no_sanitizer() * needs_no_emulator()) {
  const auto left = [] { throw Error(memory_left_text()); };
  const std::string space = thrown_with(RLIMIT_AS, address_space() + 10 * mebibyte, left);
  CHECK_MESSAGE(holds(space, " MiB are left (ulimit -v: "), space);
  const std::string data = thrown_with(RLIMIT_DATA, mebibyte, left);
  CHECK_MESSAGE(holds(data, " are left (ulimit -d: 1.00 MiB)"), data);
  const std::string resident = thrown_with(RLIMIT_RSS, mebibyte, left);
  CHECK_MESSAGE(holds(resident, "0 bytes are left (ulimit -m: 1.00 MiB)"), resident);
  const std::string most = thrown_with(RLIMIT_RSS, 1024 * mebibyte, [] { throw Error(bytes_text(memory_limit())); });
  CHECK_MESSAGE(most == "1.00 GiB", most);
  const std::string array =
      thrown_with(RLIMIT_AS, address_space() + 10 * mebibyte, [] { Array(Dtype::float32, {1 << 24}); });
  CHECK_MESSAGE(holds(array, "out of memory: an array of 67108864 bytes, and "), array);
  const std::string needed = thrown_with(RLIMIT_AS, address_space() + 10 * mebibyte,
                                         [] { require_memory_left(std::size_t{1} << 30, "the text"); });
  CHECK_MESSAGE(holds(needed, "out of memory: the text takes 1.00 GiB, and "), needed);
  CHECK_NOTHROW(require_memory_left(1, "a byte"));
  CHECK(memory_left().bytes > 0);
  CHECK(memory_left().bytes <= memory_limit());
}

TEST_CASE("a team does all the work once, for any number of threads from call to call") {
  bool right = true;
  for (int round = 0; round < 300; ++round)
    for (const int threads : {2, 1, 5, 3}) right = right && counted(threads, 1 + round % 70) == 1 + round % 70;
  CHECK(right);
  // More calls than the gate counts, so that its numbers begin again.
  std::atomic<std::int64_t> sum{0};
  for (int call = 0; call < 70000; ++call) parallel_each(2, 3, [&](std::int64_t index) { sum += index; });
  CHECK(sum == 3 * 70000);
}

TEST_CASE("helpers sleep and are woken, and each worker has its own number") {
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::array<std::atomic<int>, 4> here{};
    std::atomic<bool> is_shared{false};
    parallel_pieces(4, 64, 1, [&](std::int64_t, std::int64_t, std::int64_t worker) {
      if (here[static_cast<std::size_t>(worker)]++ != 0) is_shared = true;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      --here[static_cast<std::size_t>(worker)];
    });
    CHECK(!is_shared);
  }
}

TEST_CASE("the helpers work as well, and wait for each other if a member does") {
  std::atomic<int> arrived{0};
  const auto member = [](const void* context, int /*worker*/) {
    auto& count = *static_cast<std::atomic<int>*>(const_cast<void*>(context));
    ++count;
    while (count < 3) std::this_thread::yield();  // hangs unless all three come
  };
  run_team(3, &arrived, member);
  CHECK(arrived == 3);
}

#ifdef __linux__
namespace {
/// How often a thread of this process has slept, or -1 while it does not sleep.
long sleeps_of(long thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/status");
  std::string state;
  long count = -1;
  for (std::string word; file >> word;) {
    if (word == "State:") file >> state;
    if (word == "voluntary_ctxt_switches:") file >> count;
  }
  return state == "S" ? count : -1;
}

long when_asleep(long thread) {
  long count = -1;
  while ((count = sleeps_of(thread)) < 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return count;
}
}  // namespace

TEST_CASE("a call of few threads leaves the other helpers asleep" * needs_no_emulator()) {
  constexpr int threads = 4;
  std::thread([] {  // a thread of its own, whose helpers end with it
    struct Call {
      std::atomic<int> arrived{0};
      std::array<long, threads> numbers{};
    } call;
    run_team(threads, &call, [](const void* context, int worker) {
      auto& of = *static_cast<Call*>(const_cast<void*>(context));
      of.numbers[static_cast<std::size_t>(worker)] = syscall(SYS_gettid);
      ++of.arrived;
      while (of.arrived < threads) std::this_thread::yield();
    });
    const auto pause = [] { std::this_thread::sleep_for(std::chrono::milliseconds(5)); };
    const auto together = [](int count) {
      std::atomic<int> left{count};
      run_team(count, &left, [](const void* context, int /*worker*/) {
        auto& of = *static_cast<std::atomic<int>*>(const_cast<void*>(context));
        for (--of; of > 0;) std::this_thread::yield();  // hangs unless all come
      });
    };
    const long last = call.numbers[threads - 1];
    const long before = when_asleep(last);
    for (int i = 0; i < 20; ++i, pause()) together(2);
    CHECK(when_asleep(last) == before);
    together(threads);
    CHECK(when_asleep(last) > before);
  })
      .join();
}
#endif

TEST_CASE("work within work is done by the thread that asks for it") {
  std::atomic<int> wrong{0};
  parallel_each(3, 6, [&](std::int64_t) {
    const std::thread::id here = std::this_thread::get_id();
    parallel_each(3, 4, [&](std::int64_t) { wrong += std::this_thread::get_id() != here; });
  });
  CHECK(wrong == 0);
}

TEST_CASE("threads that call at the same time have teams of their own") {
  std::atomic<int> right{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i)
    callers.emplace_back([&] {
      for (int round = 0; round < 50; ++round) right += counted(3, 100) == 100;
    });
  for (std::thread& caller : callers) caller.join();
  CHECK(right == 200);
}

TEST_CASE("a process that shares its cores has fewer threads by default" * needs_no_sanitizer()) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    limit_default_threads(1, "others");
    limit_default_threads(most_threads, "more than before");
    const int before = default_threads().count;
    std::_Exit(before == 1 && thread_count() == 1 && thread_count(2) == 2 ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("a forked process has helpers of its own" * needs_no_sanitizer() * needs_no_emulator()) {
  CHECK(counted(3, 100) == 100);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::atomic<int> arrived{0};
    run_team(2, &arrived, [](const void* context, int /*worker*/) {
      auto& count = *static_cast<std::atomic<int>*>(const_cast<void*>(context));
      ++count;
      while (count < 2) std::this_thread::yield();
    });
    std::exit(counted(3, 100) == 100 ? 0 : 1);  // ends the helpers of this process, too
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
