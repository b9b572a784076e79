#include "kernels/table/loop_kernel.hpp"

#include <array>
#include <utility>

namespace xtape {

namespace {
template <class Word>
void copy_words(const Tile& tile) {
  const auto* from = static_cast<const Word*>(tile.in[0]);
  auto* to = static_cast<Word*>(tile.out[0]);
  for (std::int64_t i = 0; i < tile.count; ++i) to[i] = from[i];
}
template <class Word>
void fill_words(const Tile& tile) {
  const Word word = *static_cast<const Word*>(tile.in[0]);
  auto* to = static_cast<Word*>(tile.out[0]);
  for (std::int64_t i = 0; i < tile.count; ++i) to[i] = word;
}

/// Returns f(Word{}) with the unsigned integer type of this size.
template <class F>
TileFunction with_word(std::size_t bytes, const F& f) {
  switch (bytes) {
    case 8:
      return f(std::uint64_t{});
    case 4:
      return f(std::uint32_t{});
    case 2:
      return f(std::uint16_t{});
    default:
      return f(std::uint8_t{});
  }
}
}  // namespace

void LoopKernel::operator()(const KernelArguments& arguments) const {
  std::array<void*, most_operands> pointers;
  for (const Loop& loop : loops) {
    for (std::size_t i = 0; i < loop.operands.size(); ++i) {
      const auto [number, offset] = loop.operands[i];
      pointers[i] = number < 0        ? static_cast<std::byte*>(arguments.scratch) + offset
                    : number < inputs ? const_cast<void*>(arguments.in[number])  // loops only read inputs
                                      : arguments.out[number - inputs];
    }
    loop.run({pointers.data(), pointers.data() + loop.inputs, 0, loop.count, arguments.step});
  }
}

const LoopKernel* loops_of(const Kernel& kernel) {
  return kernel.run.target<LoopKernel>();
}

TileFunction copy_loop(std::size_t bytes) {
  return with_word(bytes, [](auto word) { return copy_words<decltype(word)>; });
}
TileFunction fill_loop(std::size_t bytes) {
  return with_word(bytes, [](auto word) { return fill_words<decltype(word)>; });
}
TileFunction gather_loop(std::size_t bytes, std::vector<std::int64_t> offsets) {
  return with_word(bytes, [&](auto word) {
    using Word = decltype(word);
    return [offsets](const Tile& tile) {
      const auto* from = static_cast<const Word*>(tile.in[0]);
      auto* to = static_cast<Word*>(tile.out[0]);
      for (const std::int64_t offset : offsets) *to++ = from[offset];
    };
  });
}

Kernel one_loop(TileFunction run, std::int64_t count) {
  LoopKernel kernel;
  kernel.inputs = 1;
  kernel.loops.push_back({std::move(run), {{0, 0}, {1, 0}}, 1, count});
  return {std::move(kernel)};
}

}  // namespace xtape
