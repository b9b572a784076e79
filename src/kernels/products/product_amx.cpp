#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

#include "base/threads/threads.hpp"
#include "kernels/products/amx.hpp"
#include "kernels/products/gemm.hpp"
#include "kernels/table/scratch.hpp"

namespace xtape {

#ifdef XTAPE_AMX
namespace {
// The largest number of bfloat16 parts per line and chunk. The AMX tile registers accumulate one chunk.
constexpr std::int64_t most_parts = 768;
constexpr std::int64_t apart_bytes = 128;  // between panels; at strides of 4 KiB, panels would share few cache sets
static_assert(apart_bytes >= amx::noted_bytes);
constexpr std::int64_t most_stage_bytes = 16 << 20;  // The largest size of the packed shared side. All threads read it.
constexpr std::int64_t most_prepared_bytes = 32 << 20;  // decomposing again is faster than reading more than this
constexpr std::int64_t whole_from = 8;  // with this many products or more, each task computes a whole product

/// The kernel divides the terms of a product into chunks. It decomposes each number of the shorter side (fewer rows or
/// columns) into bfloat16 parts, many chunks at a time. All threads share the result. Each task then decomposes some
/// panels of the longer side, one chunk at a time. A fixed side is decomposed in advance, for all chunks.
class AmxProduct {
 public:
  AmxProduct(const GemmPlan& plan, int parts)
      : plan_(plan),
        parts_(parts),
        lines_{plan.m, plan.n},
        panels_{ceiling(plan.m, amx::panel_lines), ceiling(plan.n, amx::panel_lines)},
        shared_(plan.m <= plan.n ? 0 : 1),
        chunks_per_sum_(ceiling(plan.k, most_parts / parts)),
        chunk_terms_(amx::steps_of(ceiling(plan.k, chunks_per_sum_)) * amx::step_terms),
        panel_bytes_(amx::steps_of(chunk_terms_) * parts * amx::tile_bytes + apart_bytes),
        chunks_(chunks_per_sum_ * plan.sums.count()) {
    if (plan.fixed >= 0) {
      prepared_each_ = chunks_ * panels_[plan.fixed] * panel_bytes_;
      if (prepared_each_ * plan.outer.count() > most_prepared_bytes) prepared_each_ = 0;
    }
    const std::int64_t shared_bytes = panels_[shared_] * panel_bytes_;
    if (is_prepared(shared_))
      stage_chunks_ = chunks_;
    else
      stage_chunks_ = std::clamp<std::int64_t>(most_stage_bytes / shared_bytes, 1, chunks_);
    // One side should stay in the second-level cache: the shared side if it is small, or else a block of the other
    // side.
    constexpr std::int64_t stays = 800 << 10, beside_it = 400 << 10, alone = 1100 << 10;
    const std::int64_t pairs = ceiling(panels_[1 - shared_], 2);
    const std::int64_t most_pairs = (shared_bytes <= stays ? beside_it : alone) / (2 * panel_bytes_);
    constexpr std::int64_t tasks_wanted = 8;
    block_panels_ =
        2 * std::clamp<std::int64_t>(ceiling(pairs, tasks_wanted), 1, std::max<std::int64_t>(1, most_pairs));
    blocks_ = ceiling(panels_[1 - shared_], block_panels_);
  }

  std::size_t scratch_bytes() const {
    const std::int64_t each = apart() ? shared_bytes() + block_bytes() : block_bytes();
    return static_cast<std::size_t>(each * plan_.threads + (apart() ? 0 : shared_bytes()));
  }

  std::size_t prepared_bytes() const { return static_cast<std::size_t>(prepared_each_ * plan_.outer.count()); }

  void prepare(const float* fixed, std::byte* prepared) const {
    const auto side = static_cast<std::size_t>(plan_.fixed);
    for (std::int64_t product = 0; product < plan_.outer.count(); ++product) {
      Arrays arrays{};
      arrays.sides[side] = fixed + offsets_of(product)[side];
      pack_side(arrays, side, 0, chunks_, plan_.threads, prepared + product * prepared_each_);
    }
  }

  void run(const float* a, const float* b, float* c, std::byte* scratch, const std::byte* prepared) const {
    const auto arrays_of = [&](std::int64_t product) {
      const auto at = offsets_of(product);
      const std::byte* ready = prepared_each_ > 0 ? prepared + product * prepared_each_ : nullptr;
      return Arrays{{a + at[0], b + at[1]}, c + at[2], ready};
    };
    if (!apart()) {
      for (std::int64_t product = 0; product < plan_.outer.count(); ++product)
        one(arrays_of(product), plan_.threads, scratch, scratch + shared_bytes());
      return;
    }
    const std::int64_t each = shared_bytes() + block_bytes();
    parallel_pieces(plan_.threads, plan_.outer.count(), 1, [&](std::int64_t begin, std::int64_t end, std::int64_t i) {
      for (std::int64_t product = begin; product < end; ++product)
        one(arrays_of(product), 1, scratch + i * each, scratch + i * each + shared_bytes());
    });
  }

 private:
  struct Arrays {
    std::array<const float*, 2> sides;
    float* c;
    const std::byte* prepared;  // the fixed side
  };
  struct Chunk {
    std::int64_t number;
    std::array<std::int64_t, 2> offsets;  // the offsets of the chunk's first term in both sides
    std::int64_t terms;
  };
  /// The panels [first, first + count) of a side, for one chunk.
  struct PanelRange {
    std::size_t side;
    const std::byte* data;
    std::int64_t first, count;
  };

  /// Returns whether each task computes a whole product. Such a task packs its own copy of the shorter side.
  bool apart() const { return plan_.outer.count() >= whole_from; }
  bool is_prepared(std::size_t side) const { return prepared_each_ > 0 && plan_.fixed == static_cast<int>(side); }
  std::int64_t shared_bytes() const {
    return is_prepared(shared_) ? 0 : stage_chunks_ * panels_[shared_] * panel_bytes_;
  }
  std::int64_t block_bytes() const { return is_prepared(1 - shared_) ? 0 : block_panels_ * panel_bytes_; }

  std::array<std::int64_t, 3> offsets_of(std::int64_t product) const {
    auto at = plan_.outer.offsets(product, plan_.outer.rank());
    for (std::size_t i = 0; i < 3; ++i) at[i] += plan_.offsets[i];
    return at;
  }

  Chunk chunk_of(std::int64_t chunk) const {
    const auto sum = plan_.sums.offsets(chunk / chunks_per_sum_, plan_.sums.rank());
    const std::int64_t first = chunk % chunks_per_sum_ * chunk_terms_;
    return {chunk,
            {sum[0] + first * plan_.k_strides[0], sum[1] + first * plan_.k_strides[1]},
            std::min(chunk_terms_, plan_.k - first)};
  }

  std::int64_t line_stride(std::size_t side) const { return (side == 0 ? plan_.m_strides : plan_.n_strides)[side]; }

  void pack(const Arrays& arrays, std::size_t side, const Chunk& chunk, std::int64_t first, std::int64_t panels,
            std::byte* to) const {
    const std::int64_t line = first * amx::panel_lines;
    const amx::Operand from{arrays.sides[side] + chunk.offsets[side] + line * line_stride(side), line_stride(side),
                            plan_.k_strides[side]};
    const std::int64_t lines = std::min(panels * amx::panel_lines, lines_[side] - line);
    (side == 0 ? amx::pack_left : amx::pack_right)(from, parts_, lines, chunk.terms, to, panel_bytes_);
  }

  /// Packs all panels of a side for chunks [first_chunk, first_chunk + chunks), one chunk after the other.
  void pack_side(const Arrays& arrays, std::size_t side, std::int64_t first_chunk, std::int64_t chunks, int threads,
                 std::byte* to) const {
    const std::int64_t panels = panels_[side];
    constexpr std::int64_t side_by_side = 4;
    const std::int64_t groups = ceiling(panels, side_by_side);
    parallel_for(threads, chunks * groups, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t first = i % groups * side_by_side;
        pack(arrays, side, chunk_of(first_chunk + i / groups), first, std::min(side_by_side, panels - first),
             to + (i / groups * panels + first) * panel_bytes_);
      }
    });
  }

  /// Computes one product.
  void one(const Arrays& arrays, int threads, std::byte* own_shared, std::byte* blocks) const {
    const std::byte* shared = is_prepared(shared_) ? arrays.prepared : own_shared;
    for (std::int64_t stage = 0; stage < chunks_; stage += stage_chunks_) {
      const std::int64_t chunks = std::min(stage_chunks_, chunks_ - stage);
      if (!is_prepared(shared_)) pack_side(arrays, shared_, stage, chunks, threads, own_shared);
      parallel_pieces(threads, blocks_, 1, [&](std::int64_t begin, std::int64_t end, std::int64_t piece) {
        const amx::Ready ready;
        for (std::int64_t block = begin; block < end; ++block)
          for (std::int64_t i = 0; i < chunks; ++i)
            fill(arrays, chunk_of(stage + i), shared + i * panels_[shared_] * panel_bytes_, block,
                 blocks + piece * block_bytes());
      });
    }
  }

  /// Adds one chunk of terms to a block of c: all panels of the shared side times some panels of the other side.
  void fill(const Arrays& arrays, const Chunk& chunk, const std::byte* shared, std::int64_t block,
            std::byte* own) const {
    const std::size_t other = 1 - shared_;
    const std::int64_t first = block * block_panels_;
    const std::int64_t panels = std::min(block_panels_, panels_[other] - first);
    const PanelRange all{shared_, shared, 0, panels_[shared_]};
    // `other` is outermost, so it is read once from memory, and the shared side stays in cache
    if (is_prepared(other)) {
      const std::byte* ready = arrays.prepared + (chunk.number * panels_[other] + first) * panel_bytes_;
      multiply(arrays, chunk, {other, ready, first, panels}, all);
    } else {
      pack(arrays, other, chunk, first, panels, own);
      multiply(arrays, chunk, all, {other, own, first, panels});
    }
  }

  /// Multiplies all panels of `outer` by all panels of `inner`. While two panels of `outer` are in use, each step
  /// prefetches some cache lines of the next two panels.
  void multiply(const Arrays& arrays, const Chunk& chunk, const PanelRange& outer, const PanelRange& inner) const {
    const std::int64_t steps = amx::steps_of(chunk.terms);
    const std::int64_t ahead_lines = ceiling(2 * panel_bytes_ / 64, steps * ceiling(inner.count, 2));
    Zeros zeros;
    for (std::int64_t i = 0; i < outer.count; i += 2)
      for (std::int64_t j = 0; j < inner.count; j += 2) {
        std::array<amx::Panels, 2> panels{};
        std::array<std::int64_t, 2> at{};  // the top row and the left column
        panels[outer.side] = {outer.data + i * panel_bytes_, panel_bytes_, outer.count - i > 1 ? 2 : 1};
        panels[inner.side] = {inner.data + j * panel_bytes_, panel_bytes_, inner.count - j > 1 ? 2 : 1};
        at[outer.side] = (outer.first + i) * amx::panel_lines;
        at[inner.side] = (inner.first + j) * amx::panel_lines;
        fetch(arrays.c + at[0] * plan_.m_strides[2] + at[1], std::min(amx::block_lines, plan_.m - at[0]));
        const amx::Ahead ahead{outer.data + (i + 2) * panel_bytes_ + j / 2 * steps * ahead_lines * 64, ahead_lines};
        alignas(64) float sums[amx::block_lines * amx::block_lines];
        amx::multiply(parts_, steps, panels[0], panels[1], ahead, sums);
        const std::int64_t rows = std::min(amx::block_lines, plan_.m - at[0]);
        const std::int64_t columns = std::min(amx::block_lines, plan_.n - at[1]);
        // With one part, infinity stays infinity. With two or three parts, decomposing infinity gives NaN. With three
        // parts, the result must include subnormal parts, which the unit treats as 0.
        if (parts_ > 1) {
          const float least = parts_ == 3 ? amx::least_sound(chunk.terms, panels[0], panels[1]) : 0;
          if (!amx::sound(sums, rows, columns, least) &&
              !zeros_explain(arrays, chunk, at[0], at[1], least, sums, zeros))
            multiply_plainly(arrays, chunk, at[0], at[1], sums);
        }
        amx::put(sums, rows, columns, plan_.accumulate || chunk.number > 0,
                 arrays.c + at[0] * plan_.m_strides[2] + at[1], plan_.m_strides[2]);
      }
  }

  /// Prefetches the block of c that is written next.
  void fetch(const float* c, std::int64_t rows) const {
    for (std::int64_t i = 0; i < rows; ++i, c += plan_.m_strides[2]) {
      __builtin_prefetch(c, 1);
      __builtin_prefetch(c + amx::panel_lines, 1);
    }
  }

  /// Whether a line of one side is all zeros in a chunk.
  bool is_zero(const Arrays& arrays, const Chunk& chunk, std::size_t side, std::int64_t line) const {
    const float* x = arrays.sides[side] + chunk.offsets[side] + line * line_stride(side);
    const std::int64_t step = plan_.k_strides[side];
    std::uint32_t bits = 0;  // the bits of all terms, without the signs
    if (step == 1) {
#pragma omp simd reduction(| : bits)
      for (std::int64_t k = 0; k < chunk.terms; ++k) bits |= std::bit_cast<std::uint32_t>(x[k]) << 1;
    } else {
      for (std::int64_t k = 0; k < chunk.terms && bits == 0; ++k) bits = std::bit_cast<std::uint32_t>(x[k * step]) << 1;
    }
    return bits == 0;
  }

  /// Caches which lines of a block are all zeros in one chunk, with one bit per line. It keeps recent blocks of lines,
  /// because each block is multiplied by many blocks of the other side.
  struct ZeroLines {
    std::int64_t first = -1;
    std::uint32_t known = 0, zero = 0;
  };
  static constexpr std::size_t kept_blocks = 32;
  using Zeros = std::array<std::array<ZeroLines, kept_blocks>, 2>;

  /// Tests the lines in `wanted`, then returns all lines known to be zero, as a bit mask. The block begins at line
  /// `first`.
  std::uint32_t zero_lines(const Arrays& arrays, const Chunk& chunk, std::size_t side, std::int64_t first,
                           std::uint32_t wanted, Zeros& zeros) const {
    ZeroLines& lines = zeros[side][static_cast<std::size_t>(first / amx::block_lines) % kept_blocks];
    if (lines.first != first) lines = {first};
    for (std::uint32_t left = wanted & ~lines.known; left != 0; left &= left - 1)
      if (is_zero(arrays, chunk, side, first + std::countr_zero(left))) lines.zero |= left & (0u - left);
    lines.known |= wanted;
    return lines.zero;
  }

  /// Returns whether every unsound sum of the block is 0 and lies in a zero row of a or a zero column of b. Such sums
  /// are correct. `sound` rejects a sum of 0 only if an operand contains tiny or infinite numbers.
  bool zeros_explain(const Arrays& arrays, const Chunk& chunk, std::int64_t top, std::int64_t left, float least,
                     const float* sums, Zeros& zeros) const {
    const std::int64_t rows = std::min(amx::block_lines, plan_.m - top);
    const std::int64_t columns = std::min(amx::block_lines, plan_.n - left);
    std::array<std::uint32_t, amx::block_lines> zero_sums;
    if (!amx::only_zeros(sums, rows, columns, least, zero_sums.data())) return false;
    std::uint32_t with_zeros = 0, to_explain = 0;
    for (std::int64_t i = 0; i < rows; ++i)
      if (zero_sums[i] != 0) with_zeros |= std::uint32_t{1} << i;
    with_zeros &= ~zero_lines(arrays, chunk, 0, top, with_zeros, zeros);
    for (; with_zeros != 0; with_zeros &= with_zeros - 1) to_explain |= zero_sums[std::countr_zero(with_zeros)];
    return to_explain == 0 || (to_explain & ~zero_lines(arrays, chunk, 1, left, to_explain, zeros)) == 0;
  }

  /// Computes a block in float32 arithmetic if the unit's result is not sound. Decomposing an infinity gives NaN parts,
  /// and the unit treats subnormal parts as 0.
  void multiply_plainly(const Arrays& arrays, const Chunk& chunk, std::int64_t top, std::int64_t left,
                        float* sums) const {
    constexpr std::int64_t width = amx::block_lines;
    const std::int64_t rows = std::min(width, plan_.m - top), columns = std::min(width, plan_.n - left);
    const float* a = arrays.sides[0] + chunk.offsets[0] + top * plan_.m_strides[0];
    const float* b = arrays.sides[1] + chunk.offsets[1] + left * plan_.n_strides[1];
    std::fill_n(sums, rows * width, 0.0f);
    alignas(64) float right[width] = {};
    for (std::int64_t k = 0; k < chunk.terms; ++k, a += plan_.k_strides[0], b += plan_.k_strides[1]) {
      for (std::int64_t j = 0; j < columns; ++j) right[j] = b[j * plan_.n_strides[1]];
      for (std::int64_t i = 0; i < rows; ++i) {
        const float x = a[i * plan_.m_strides[0]];
#pragma omp simd
        for (std::int64_t j = 0; j < width; ++j) sums[i * width + j] += x * right[j];
      }
    }
  }

  GemmPlan plan_;
  int parts_;                                   // the number of parts per number
  std::array<std::int64_t, 2> lines_, panels_;  // lines: rows of the left side, columns of the right side
  std::size_t shared_;                          // the shorter side
  std::int64_t chunks_per_sum_, chunk_terms_;
  std::int64_t panel_bytes_;  // bytes of a panel in one chunk
  std::int64_t chunks_;
  std::int64_t prepared_each_ = 0;  // bytes of the decomposed fixed side of a product; 0: decomposed at every run
  std::int64_t stage_chunks_ = 1;
  std::int64_t block_panels_ = 2, blocks_ = 1;
};

int parts_for(Precision precision) {
  return !rounds_to_bfloat16(precision) ? 3 : precision == Precision::bf16x3 ? 2 : 1;
}
}  // namespace

bool amx_suits(const GemmPlan& plan, Precision precision) {
  // Decomposing takes (m + n) k steps, and multiplying takes m n k steps, so the harmonic mean of m and n determines
  // whether the unit pays off. Below these limits, tiles are as fast.
  const std::int64_t least_mean = rounds_to_bfloat16(precision) ? 48 : 80;
  constexpr std::int64_t least_terms = 16;
  return 2 * plan.m * plan.n >= least_mean * (plan.m + plan.n) && plan.k >= least_terms && amx::available();
}

MatrixProducts<float> make_amx(const GemmPlan& plan, Precision precision) {
  const AmxProduct product(with_columns_running(plan), parts_for(precision));
  MatrixProducts<float> made;
  made.run = [product, swapped = !columns_run(plan)](const void* a, const void* b, float* c, void* scratch,
                                                     const void* prepared) {
    if (swapped) std::swap(a, b);
    product.run(static_cast<const float*>(a), static_cast<const float*>(b), c, static_cast<std::byte*>(scratch),
                static_cast<const std::byte*>(prepared));
  };
  made.scratch_bytes = product.scratch_bytes();
  made.prepared_bytes = product.prepared_bytes();
  if (made.prepared_bytes > 0)
    made.prepare = [product](const void* fixed, void* prepared) {
      product.prepare(static_cast<const float*>(fixed), static_cast<std::byte*>(prepared));
    };
  return made;
}

#else
bool amx_suits(const GemmPlan&, Precision) {
  return false;
}
MatrixProducts<float> make_amx(const GemmPlan&, Precision) {
  return {};
}
#endif

}  // namespace xtape
