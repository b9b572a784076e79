#include "ready.hpp"

#include <algorithm>
#include <functional>

#include "scratch.hpp"
#include "threads.hpp"

namespace xtape {

void name_call(Error& error, const Site& site) {
  if (site.op != nullptr) error.name_op(site.op->name);
  error.name_place(to_string(site));
}

void ReadyStep::run(std::uint64_t step, int threads) const {
  if (followers.empty()) {
    kernel.run(frame(step));
    return;
  }
  const auto follow = [this, step](const Band& band) {
    for (const ReadyStep& follower : followers) follower.kernel.band(follower.frame(step), band);
  };
  if (kernel.run_in_bands) {
    kernel.run_in_bands(frame(step), std::cref(follow));
    return;
  }
  constexpr std::int64_t elements_a_band = 16384;  // a few arrays of them lie in the second-level cache
  const std::int64_t grain = ceiling(elements_a_band, band_step) * band_step;
  parallel_pieces(threads, elements, grain, [&](std::int64_t begin, std::int64_t end, std::int64_t worker) {
    for (std::int64_t first = begin; first < end; first += grain) {
      const Band band{first, std::min(end, first + grain), worker};
      kernel.band(frame(step), band);
      follow(band);
    }
  });
}

}  // namespace xtape
