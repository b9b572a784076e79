// Arrays of blocks as floats.
#include "base/threads/threads.hpp"
#include "kernels/elements/copy.hpp"
#include "kernels/elements/loops.hpp"
#include "kernels/math/block_lanes.hpp"
#include "kernels/table/kernel_form.hpp"

namespace xtape {

namespace {
/// Writes the numbers first, first + step, … of an array of blocks as floats that are `apart` elements apart.
template <class B>
void widen_run(const void* blocks, std::int64_t first, std::int64_t step, std::int64_t count, float* to,
               std::int64_t apart) {
  if (step == 1 && apart == 1) return widen_blocks<B>(blocks, first, count, to);
  constexpr std::int64_t most = 256;
  float piece[most];
  for (std::int64_t i = 0; i < count; i += most) {
    const std::int64_t some = std::min(most, count - i);
    if (step == 1)
      widen_blocks<B>(blocks, first + i, some, piece);
    else
      for (std::int64_t k = 0; k < some; ++k) widen_blocks<B>(blocks, first + (i + k) * step, 1, piece + k);
    for (std::int64_t k = 0; k < some; ++k) to[(i + k) * apart] = piece[k];
  }
}
}  // namespace

[[gnu::cold]] std::function<void(const void*, float*)> make_widen_blocks(Dtype dtype, const Layout& in, int threads) {
  Loops<2> loops = loops_over(in, Layout::dense(in.shape));
  loops.merge();
  loops.sort_by(0);  // the neighbours of a block are decoded together
  loops.merge();
  if (loops.rank() == 0) loops.add(1, {1, 1});
  constexpr std::int64_t grain = 1 << 14;
  return with_block(dtype, [&](auto block) -> std::function<void(const void*, float*)> {
    return [=, offset = in.offset](const void* from, float* to) {
      const std::size_t last = loops.rank() - 1;
      const std::int64_t length = loops.sizes[last], step = loops.strides[0][last], apart = loops.strides[1][last];
      parallel_for(threads, loops.count(), grain, [&](std::int64_t begin, std::int64_t finish) {
        while (begin < finish) {
          const std::int64_t at = begin % length, some = std::min(finish - begin, length - at);
          const auto [row, place] = loops.offsets(begin / length, last);
          widen_run<decltype(block)>(from, offset + row + at * step, step, some, to + place + at * apart, apart);
          begin += some;
        }
      });
    };
  });
}

namespace {
Kernel make_dequantize_blocks(const KernelForm& form) {
  return {[widen = make_widen_blocks(form.dtype(0), form.in[0], form.threads)](const KernelArguments& arguments) {
    widen(arguments.in[0], out<float>(arguments, 0));
  }};
}
}  // namespace

KernelList list_blocks() {
  return {{"dequantize_blocks", make_dequantize_blocks}};
}

}  // namespace xtape
