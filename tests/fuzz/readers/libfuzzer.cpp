// The two functions that libFuzzer calls. The environment variable XTAPE_FUZZ_TARGET names the target, so that one
// program contains all targets.
// The objects that are shared with the suites include doctest.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "target.hpp"

namespace {
void (*run)(xtape::fuzz::Input) = nullptr;
}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* name = std::getenv("XTAPE_FUZZ_TARGET");
  for (const xtape::fuzz::Target& target : xtape::fuzz::targets())
    if (name != nullptr && std::strcmp(name, target.name) == 0) run = target.run;
  if (run != nullptr) return 0;
  std::fputs("XTAPE_FUZZ_TARGET names one of these:\n", stderr);
  for (const xtape::fuzz::Target& target : xtape::fuzz::targets()) std::fprintf(stderr, "%s\n", target.name);
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
  run({reinterpret_cast<const char*>(bytes), count});
  return 0;
}
