/// The blocks of operands of products in register tiles, and their packing.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/products/gemm.hpp"
#include "kernels/products/packing.hpp"
#include "kernels/products/tile_loops.hpp"
#include "kernels/table/scratch.hpp"

namespace xtape {

/// Divides both operands into blocks of terms. A block of b is divided into panels with as many columns as a tile. A
/// block of a is divided into bands with as many rows as a tile.
template <class F>
class TileOperands {
 public:
  using Part = typename F::Part;
  struct Block {
    std::array<std::int64_t, 3> offsets;  // offsets of the block's first terms in a and b, and of the product in c
    std::int64_t terms;
    std::int64_t first;  // the first term
    std::int64_t parts() const { return ceiling(terms, F::terms); }
  };
  /// Rows of a for a tile, in place or packed.
  struct LeftRows {
    const Part* data;
    std::int64_t row, part;  // strides
  };

  [[gnu::cold]] explicit TileOperands(const GemmPlan& plan)  // cold: planning should be small code
      : plan_(plan),
        panels_(ceiling(plan.n, panel_width<F>)),
        block_parts_(std::min(panel_parts, ceiling(plan.k, F::terms))),
        blocks_each_(ceiling(plan.k, block_parts_ * F::terms)),
        bands_(plan.m),
        packs_left_(F::must_pack || plan.narrow[0] || std::abs(plan.k_strides[0]) >= far ||
                    (!large_caches && std::abs(plan.k_strides[0]) >= rather_far && plan.n >= many_columns)),
        interleaves_(!F::must_pack && plan.m_strides[0] == 1),
        packing_{Packing<F>::of(plan.narrow[0]), Packing<F>::of(plan.narrow[1])} {
    const bool gathers = plan.gathered == 1;
    if (gathers)
      for (std::int64_t i = 0; i < plan.n; ++i) lines_.push_back(gathered(i * plan.n_strides[1]));
    for (std::int64_t t = 0; t < (gathers ? plan.k : block_parts_); ++t)
      terms_.push_back(gathers ? gathered(t * plan.k_strides[1]) : t * plan.k_strides[1]);
    terms_.resize(terms_.size() + parts_ahead, terms_.empty() ? 0 : terms_.back());
    const bool may = !F::must_pack && !plan.narrow[1] && (gathers || (plan.gathered < 0 && plan.n_strides[1] == 1));
    for (std::int64_t p = 0; p < panels_; ++p) in_place_.push_back(may && registers_run(p));
  }

  std::int64_t panels() const { return panels_; }
  const Bands& bands() const { return bands_; }
  std::int64_t blocks() const { return blocks_each_ * plan_.sums.count(); }
  /// The sizes of a packed band and a packed panel, in parts.
  std::int64_t band_size() const { return tile_rows * block_parts_; }
  std::int64_t panel_size() const { return block_parts_ * panel_width<F>; }

  Block block_of(std::int64_t product, std::int64_t block) const {
    const auto start = plan_.outer.offsets(product, plan_.outer.rank());
    const auto sum = plan_.sums.offsets(block / blocks_each_, plan_.sums.rank());
    const std::int64_t first = block % blocks_each_ * block_parts_ * F::terms;
    const std::int64_t right = plan_.gathered == 1 ? plan_.gathered_from.offset + gathered(start[1]) + gathered(sum[1])
                                                   : plan_.offsets[1] + start[1] + sum[1] + first * plan_.k_strides[1];
    return {{plan_.offsets[0] + start[0] + sum[0] + first * plan_.k_strides[0], right, plan_.offsets[2] + start[2]},
            std::min(block_parts_ * F::terms, plan_.k - first),
            first};
  }

  /// Whether tiles can read panel `p` of b in place.
  bool panel_in_place(std::int64_t p) const { return in_place_[static_cast<std::size_t>(p)]; }
  /// Whether the columns of a gathered panel stay in the first-level cache while tiles read them repeatedly. They stay
  /// if the windows share so many cache lines that no more than a few lines compete for the same cache set.
  bool stays_in_cache() const {
    if (plan_.gathered != 1) return false;
    constexpr std::int64_t line_parts = 64 / sizeof(Part), sets = 64, most_of_a_set = 6;
    std::vector<std::int64_t> lines;
    for (std::int64_t t = 0; t < block_parts_; ++t) {
      lines.push_back(terms_[static_cast<std::size_t>(t)] / line_parts);
      lines.push_back((terms_[static_cast<std::size_t>(t)] + panel_width<F> - 1) / line_parts);
    }
    std::sort(lines.begin(), lines.end());
    lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
    std::array<std::int64_t, sets> of_set{};
    for (const std::int64_t line : lines) ++of_set[static_cast<std::size_t>(line & (sets - 1))];
    return *std::max_element(of_set.begin(), of_set.end()) <= most_of_a_set;
  }
  Columns<F> columns_in_place(const void* b, const Block& block, std::int64_t p, Part* packed) const {
    Columns<F> columns{{}, terms_.data() + (lines_.empty() ? 0 : block.first), packed};
    for (std::int64_t r = 0; r < row_registers; ++r)
      columns.from[static_cast<std::size_t>(r)] =
          static_cast<const Part*>(b) + block.offsets[1] + line(p * panel_width<F> + r * register_width);
    return columns;
  }
  /// Packs panel `p` of a block of b, one part after the other, with zeros beyond the last column.
  void pack_panel(const void* b, const Block& block, std::int64_t p, Part* to) const {
    const std::int64_t columns = std::min(panel_width<F>, plan_.n - p * panel_width<F>);
    if (columns % static_cast<std::int64_t>(xsimd::batch<Part>::size) != 0)
      std::fill_n(to, block.parts() * panel_width<F>, Part{});
    if constexpr (!F::must_pack)
      if (plan_.gathered == 1) {
        pack_gathered(static_cast<const Part*>(b) + block.offsets[1], lines_.data() + p * panel_width<F>, columns,
                      terms_.data() + block.first, block.terms, to, panel_width<F>);
        return;
      }
    packing_[1].lines(b, start_of_panel(block, p), plan_.n_strides[1], plan_.k_strides[1], columns, block.terms, to, 1,
                      panel_width<F>);
  }

  /// Whether rows of a are packed. If not, tiles read them in place.
  bool packs_left() const { return packs_left_; }
  /// The number of tasks that pack bands [first, finish) of a block of a.
  std::int64_t left_tasks(std::int64_t first, std::int64_t finish) const {
    return interleaves_ ? ceiling(finish - first, packed_bands)
                        : ceiling(bands_.top_of(finish) - bands_.top_of(first), lines_together);
  }
  /// Runs one of the tasks of left_tasks. Packs bands part after part if rows are adjacent, otherwise row after row.
  void pack_left(const void* a, const Block& block, std::int64_t first, std::int64_t finish, std::int64_t task,
                 Part* to) const {
    const std::int64_t line = plan_.m_strides[0], term = plan_.k_strides[0], start = block.offsets[0];
    if (interleaves_) {
      const std::int64_t begin = task * packed_bands;
      packing_[0].bands(a, start, term, block.parts(), bands_, first + begin,
                        std::min(finish, first + begin + packed_bands), to + begin * band_size(), band_size());
    } else {
      const std::int64_t begin = task * lines_together, row = bands_.top_of(first) + begin;
      packing_[0].lines(a, start + row * line, line, term, std::min(lines_together, bands_.top_of(finish) - row),
                        block.terms, to + begin * block_parts_, block_parts_, 1);
    }
  }
  /// Returns the rows of a from `row` on.
  LeftRows rows_in_place(const void* a, const Block& block, std::int64_t row) const {
    return {static_cast<const Part*>(a) + block.offsets[0] + row * plan_.m_strides[0], plan_.m_strides[0],
            plan_.k_strides[0]};
  }
  /// Returns the rows of a band in `packed`, which begins with band `first`.
  LeftRows packed_rows(const Part* packed, std::int64_t first, std::int64_t band) const {
    if (interleaves_) return {packed + (band - first) * band_size(), 1, tile_rows};
    return {packed + (bands_.top_of(band) - bands_.top_of(first)) * block_parts_, block_parts_, 1};
  }

 private:
  static constexpr auto register_width = static_cast<std::int64_t>(xsimd::batch<Part>::size);
  static constexpr std::int64_t panel_parts = 256;   // a panel has 16 or 32 KiB, which fits the first-level cache
  static constexpr std::int64_t far = 4096;          // for larger strides of terms, reading in place wastes cache lines
  static constexpr std::int64_t rather_far = 256;    // like `far`, with AVX2, if packed rows serve many columns
  static constexpr std::int64_t many_columns = 128;  // the smallest number that counts as many
  static constexpr std::int64_t lines_together = 16;  // lines per task if an operand is packed line by line
  // bands per task, about 100 rows, if an operand is packed in bands
  static constexpr std::int64_t packed_bands = large_caches ? 8 : 16;

  /// The distance of an element from the first element in the gathered layout. `offset` is the element's offset in the
  /// virtual packed copy. The axes of lines, terms, products and sums differ, so their distances add up.
  std::int64_t gathered(std::int64_t offset) const {
    std::int64_t place = 0;
    const Layout& from = plan_.gathered_from;
    for (std::size_t axis = from.shape.size(); axis-- > 0; offset /= from.shape[axis])
      place += offset % from.shape[axis] * from.strides[axis];
    return place;
  }
  /// The distance of column `i` of b from the first column.
  std::int64_t line(std::int64_t i) const {
    return lines_.empty() ? i * plan_.n_strides[1] : lines_[static_cast<std::size_t>(i)];
  }
  /// Whether panel `p` is complete and the columns of each of its registers are adjacent.
  bool registers_run(std::int64_t p) const {
    const std::int64_t end = (p + 1) * panel_width<F>;
    if (plan_.n < end) return false;
    for (std::int64_t i = p * panel_width<F>; i < end; ++i)
      if (i % register_width != 0 && line(i) != line(i - 1) + 1) return false;
    return true;
  }
  std::int64_t start_of_panel(const Block& block, std::int64_t p) const {
    return block.offsets[1] + p * panel_width<F> * plan_.n_strides[1];
  }

  GemmPlan plan_;
  std::int64_t panels_;
  std::int64_t block_parts_, blocks_each_;  ///< Parts per block; blocks per sum.
  Bands bands_;
  bool packs_left_, interleaves_;
  std::vector<std::int64_t> lines_;  ///< For a gathered b: the distances of its columns from the first column.
  /// The distances of the terms of b from the first term of a block. If b is gathered, the distances are from the first
  /// of all terms.
  std::vector<std::int64_t> terms_;
  std::vector<bool> in_place_;  ///< For each panel of b, whether tiles can read it in place.
  std::array<Packing<F>, 2> packing_;
};

}  // namespace xtape
