#include "product_amx.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "amx.hpp"
#include "threads.hpp"

namespace xtape {

namespace {
constexpr std::int64_t most_terms = 256;   // of a chunk, which is summed in the unit's registers
constexpr std::int64_t apart_bytes = 128;  // between panels: at steps of 4 KiB they would share few places of a cache
constexpr std::int64_t most_stage_bytes = 16 << 20;  // of the side that is split for all
constexpr std::int64_t products_apart = 8;           // from so many on, a task is a whole product

std::int64_t ceiling(std::int64_t count, std::int64_t each) {
  return (count + each - 1) / each;
}

/// One product's terms are cut into chunks. Of the shorter side (fewer rows or columns) the parts of many chunks are
/// made ready for all threads; each task then splits some panels of the longer side, a chunk at a time.
class AmxProduct {
 public:
  explicit AmxProduct(const GemmPlan& plan)
      : plan_(plan),
        lines_{plan.m, plan.n},
        panels_{ceiling(plan.m, amx::panel_lines), ceiling(plan.n, amx::panel_lines)},
        shared_(plan.m <= plan.n ? 0 : 1),
        chunks_per_sum_(ceiling(plan.k, most_terms)),
        chunk_terms_(amx::steps_of(ceiling(plan.k, chunks_per_sum_)) * amx::step_terms),
        panel_bytes_(amx::steps_of(chunk_terms_) * amx::step_bytes + apart_bytes),
        chunks_(chunks_per_sum_ * plan.sums.count()) {
    const std::int64_t shared_bytes = panels_[shared_] * panel_bytes_;
    stage_chunks_ = std::clamp<std::int64_t>(most_stage_bytes / shared_bytes, 1, chunks_);
    // What is used again and again should stay in the second-level cache: the shared side, if it is small, else a
    // block.
    constexpr std::int64_t stays = 800 << 10, beside_it = 400 << 10, alone = 1100 << 10;
    const std::int64_t pairs = ceiling(panels_[1 - shared_], 2);
    const std::int64_t most_pairs = (shared_bytes <= stays ? beside_it : alone) / (2 * panel_bytes_);
    constexpr std::int64_t tasks_wanted = 4;
    block_panels_ =
        2 * std::clamp<std::int64_t>(ceiling(pairs, tasks_wanted), 1, std::max<std::int64_t>(1, most_pairs));
    blocks_ = ceiling(panels_[1 - shared_], block_panels_);
  }

  std::size_t scratch_bytes() const {
    const std::int64_t each = apart() ? shared_bytes() + block_bytes() : block_bytes();
    return static_cast<std::size_t>(each * plan_.threads + (apart() ? 0 : shared_bytes()));
  }

  void run(const float* a, const float* b, float* c, std::byte* scratch) const {
    if (!apart()) {
      for (std::int64_t product = 0; product < plan_.outer.count(); ++product)
        one(start_of(product, a, b, c), plan_.threads, scratch, scratch + shared_bytes());
      return;
    }
    const std::int64_t each = shared_bytes() + block_bytes();
    parallel_pieces(plan_.threads, plan_.outer.count(), 1, [&](std::int64_t begin, std::int64_t end, std::int64_t i) {
      for (std::int64_t product = begin; product < end; ++product)
        one(start_of(product, a, b, c), 1, scratch + i * each, scratch + i * each + shared_bytes());
    });
  }

 private:
  struct Arrays {
    std::array<const float*, 2> sides;
    float* c;
  };
  struct Chunk {
    std::array<std::int64_t, 2> offsets;  // into the sides
    std::int64_t terms;
    bool first;
  };

  bool apart() const { return plan_.outer.count() >= products_apart; }
  std::int64_t shared_bytes() const { return stage_chunks_ * panels_[shared_] * panel_bytes_; }
  std::int64_t block_bytes() const { return block_panels_ * panel_bytes_; }

  Arrays start_of(std::int64_t product, const float* a, const float* b, float* c) const {
    const auto at = plan_.outer.offsets(product, plan_.outer.rank());
    return {{a + at[0] + plan_.offsets[0], b + at[1] + plan_.offsets[1]}, c + at[2] + plan_.offsets[2]};
  }

  Chunk chunk_of(std::int64_t chunk) const {
    const auto sum = plan_.sums.offsets(chunk / chunks_per_sum_, plan_.sums.rank());
    const std::int64_t first = chunk % chunks_per_sum_ * chunk_terms_;
    return {{sum[0] + first * plan_.k_strides[0], sum[1] + first * plan_.k_strides[1]},
            std::min(chunk_terms_, plan_.k - first),
            chunk == 0};
  }

  std::int64_t line_stride(std::size_t side) const { return (side == 0 ? plan_.m_strides : plan_.n_strides)[side]; }

  void pack(const Arrays& arrays, std::size_t side, const Chunk& chunk, std::int64_t first, std::int64_t panels,
            std::byte* to) const {
    const std::int64_t line = first * amx::panel_lines;
    const amx::Operand from{arrays.sides[side] + chunk.offsets[side] + line * line_stride(side), line_stride(side),
                            plan_.k_strides[side]};
    const std::int64_t lines = std::min(panels * amx::panel_lines, lines_[side] - line);
    (side == 0 ? amx::pack_left : amx::pack_right)(from, lines, chunk.terms, to, panel_bytes_);
  }

  void one(const Arrays& arrays, int threads, std::byte* shared, std::byte* blocks) const {
    for (std::int64_t stage = 0; stage < chunks_; stage += stage_chunks_) {
      const std::int64_t chunks = std::min(stage_chunks_, chunks_ - stage);
      const std::int64_t panels = panels_[shared_];
      constexpr std::int64_t side_by_side = 4;
      const std::int64_t groups = ceiling(panels, side_by_side);
      parallel_for(threads, chunks * groups, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t first = i % groups * side_by_side;
          pack(arrays, shared_, chunk_of(stage + i / groups), first, std::min(side_by_side, panels - first),
               shared + (i / groups * panels + first) * panel_bytes_);
        }
      });
      parallel_pieces(threads, blocks_, 1, [&](std::int64_t begin, std::int64_t end, std::int64_t piece) {
        const amx::Ready ready;
        for (std::int64_t block = begin; block < end; ++block)
          for (std::int64_t i = 0; i < chunks; ++i)
            fill(arrays, chunk_of(stage + i), shared + i * panels * panel_bytes_, block,
                 blocks + piece * block_bytes());
      });
    }
  }

  /// What one chunk of terms adds to a block of c: all of the shared side against some panels of the other.
  void fill(const Arrays& arrays, const Chunk& chunk, const std::byte* shared, std::int64_t block,
            std::byte* own) const {
    const std::size_t other = 1 - shared_;
    const std::int64_t first = block * block_panels_;
    const std::int64_t own_panels = std::min(block_panels_, panels_[other] - first);
    pack(arrays, other, chunk, first, own_panels, own);
    // While two of the shared panels meet all of the block's, the next two come nearer, some lines at every step.
    const std::int64_t steps = amx::steps_of(chunk.terms);
    const std::int64_t ahead_lines = ceiling(2 * panel_bytes_ / 64, steps * ceiling(own_panels, 2));
    for (std::int64_t i = 0; i < panels_[shared_]; i += 2)
      for (std::int64_t j = 0; j < own_panels; j += 2) {
        const amx::Panels given{shared + i * panel_bytes_, panel_bytes_, panels_[shared_] - i > 1 ? 2 : 1};
        const amx::Panels split{own + j * panel_bytes_, panel_bytes_, own_panels - j > 1 ? 2 : 1};
        const std::int64_t at_shared = i * amx::panel_lines, at_own = (first + j) * amx::panel_lines;
        const std::int64_t top = shared_ == 0 ? at_shared : at_own, left = shared_ == 0 ? at_own : at_shared;
        fetch(arrays.c + top * plan_.m_strides[2] + left, std::min(amx::block_lines, plan_.m - top));
        const amx::Ahead ahead{shared + (i + 2) * panel_bytes_ + j / 2 * steps * ahead_lines * 64, ahead_lines};
        alignas(64) float sums[amx::block_lines * amx::block_lines];
        amx::multiply(steps, shared_ == 0 ? given : split, shared_ == 0 ? split : given, ahead, sums);
        put(arrays, chunk, sums, top, left);
      }
  }

  /// Asks for the block of c that is about to be written.
  void fetch(const float* c, std::int64_t rows) const {
    for (std::int64_t i = 0; i < rows; ++i, c += plan_.m_strides[2]) {
      __builtin_prefetch(c, 1);
      __builtin_prefetch(c + amx::panel_lines, 1);
    }
  }

  void put(const Arrays& arrays, const Chunk& chunk, const float* sums, std::int64_t top, std::int64_t left) const {
    const std::int64_t rows = std::min(amx::block_lines, plan_.m - top);
    const std::int64_t columns = std::min(amx::block_lines, plan_.n - left);
    float* to = arrays.c + top * plan_.m_strides[2] + left;
    alignas(64) float exact[amx::block_lines * amx::block_lines];
    if (!amx::finite(sums, rows, columns)) {
      multiply_exactly(arrays, chunk, top, left, exact);
      sums = exact;
    }
    amx::put(sums, rows, columns, plan_.accumulate || !chunk.first, to, plan_.m_strides[2]);
  }

  /// As the definition says it: the parts of an infinite number are no numbers.
  void multiply_exactly(const Arrays& arrays, const Chunk& chunk, std::int64_t top, std::int64_t left,
                        float* sums) const {
    const float* a = arrays.sides[0] + chunk.offsets[0];
    const float* b = arrays.sides[1] + chunk.offsets[1];
    for (std::int64_t i = 0; i < std::min(amx::block_lines, plan_.m - top); ++i)
      for (std::int64_t j = 0; j < std::min(amx::block_lines, plan_.n - left); ++j) {
        float sum = 0;
        for (std::int64_t k = 0; k < chunk.terms; ++k)
          sum = std::fma(a[(top + i) * plan_.m_strides[0] + k * plan_.k_strides[0]],
                         b[(left + j) * plan_.n_strides[1] + k * plan_.k_strides[1]], sum);
        sums[i * amx::block_lines + j] = sum;
      }
  }

  GemmPlan plan_;
  std::array<std::int64_t, 2> lines_, panels_;  // rows of the left side, columns of the right one
  std::size_t shared_;                          // the shorter side
  std::int64_t chunks_per_sum_, chunk_terms_;
  std::int64_t panel_bytes_;  // of a chunk of one panel
  std::int64_t chunks_;
  std::int64_t stage_chunks_ = 1;
  std::int64_t block_panels_ = 2, blocks_ = 1;
};
}  // namespace

bool amx_suits(const GemmPlan& plan) {
  return std::min(plan.m, plan.n) >= 12 && plan.k >= 16 && amx::available();
}

std::size_t amx_scratch_bytes(const GemmPlan& plan) {
  return AmxProduct(with_columns_running(plan)).scratch_bytes();
}

std::function<void(const float*, const float*, float*, void*)> make_amx(const GemmPlan& plan) {
  return [product = AmxProduct(with_columns_running(plan)), swapped = !columns_run(plan)](
             const float* a, const float* b, float* c, void* scratch) {
    product.run(swapped ? b : a, swapped ? a : b, c, static_cast<std::byte*>(scratch));
  };
}

}  // namespace xtape
