#include "kernels/random/philox.hpp"

#include <Random123/philox.h>
#include <doctest/doctest.h>

#include <vector>

using namespace xtape;

TEST_CASE("Philox gives the same numbers as Random123") {
  const RandomStream stream{0x123456789ABCDEF0u, 0xFEDCBA9876543210u};
  const std::int64_t first = (std::int64_t{5} << 34) + 64;
  std::vector<std::uint32_t> words(philox::words);
  philox::fill(stream, first, words.data());
  for (std::int64_t i = 0; i < philox::words; i += 4) {
    const auto block = static_cast<std::uint64_t>(first + i) / 4;
    const r123::Philox4x32::ctr_type counter{
        {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
         static_cast<std::uint32_t>(stream.step), static_cast<std::uint32_t>(stream.step >> 32)}};
    const r123::Philox4x32::key_type key{
        {static_cast<std::uint32_t>(stream.key), static_cast<std::uint32_t>(stream.key >> 32)}};
    const auto wanted = r123::Philox4x32()(counter, key);
    for (std::size_t k = 0; k < 4; ++k) CHECK(words[static_cast<std::size_t>(i) + k] == wanted[k]);
  }
}
