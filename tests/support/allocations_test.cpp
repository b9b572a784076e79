#include "allocations.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "needs.hpp"

using namespace xtape;

TEST_CASE("allocations of every kind and thread are counted" * needs_no_sanitizer()) {
  const auto count_of = [](auto&& work) {
    const AllocationCount allocations;
    work();
    return allocations.count();
  };
  static void* kept;
  const auto keep = [](void* memory) {  // prevents the compiler from removing the allocation
    asm volatile("" : : "r"(memory) : "memory");
    return kept = memory;
  };
  CHECK(count_of([] {}) == 0);
  CHECK(count_of([&] { free(keep(malloc(10))); }) == 1);
  CHECK(count_of([&] { free(keep(calloc(3, 10))); }) == 1);
  CHECK(count_of([&] { free(keep(aligned_alloc(64, 128))); }) == 1);
  CHECK(count_of([&] {
          void* memory = nullptr;
          CHECK(posix_memalign(&memory, 64, 100) == 0);
          free(keep(memory));
        }) >= 1);
  CHECK(count_of([&] { keep(std::vector<double>(100).data()); }) == 1);
  const auto in_thread = [&] { std::thread([&] { keep(std::make_unique<int>(3).get()); }).join(); };
  CHECK(count_of(in_thread) >= 2);  // the allocation of the thread and the allocation of the integer
}
