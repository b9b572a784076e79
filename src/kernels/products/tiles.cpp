#include "products/tiles.hpp"

#include <algorithm>
#include <cmath>

#include "instruction_set.hpp"
#include "products/tile_loops.hpp"
#include "scratch.hpp"
#include "threads.hpp"

namespace xtape {

namespace {
constexpr std::int64_t panel_parts = 256;  // parts packed together: a panel has 16 or 32 KiB, for the first-level cache
constexpr std::int64_t group_rows = 128;   // rows of a task, which share the panels of b in the second-level cache
constexpr std::int64_t group_panels = 32;
constexpr double worth_a_task = 1 << 20;  // multiply-adds
constexpr std::int64_t most_tasks = 8;
constexpr std::int64_t products_apart = 16;        // with this many products or more, a task is a whole product
constexpr std::int64_t most_tile_bytes = 4 << 20;  // of operands, packed at a time
constexpr std::int64_t few_rows = 1024;            // up to this many, a task computes all rows of some columns
constexpr std::int64_t few_panels = 8;             // of such a task: packed, they stay in the second-level cache
constexpr std::int64_t far = 4096;                 // from this stride of terms on, reading in place wastes cache lines
constexpr std::int64_t rather_far = 256;           // the same with AVX2, if rows that are packed serve many columns
constexpr std::int64_t many_columns = 128;         // that many
constexpr std::int64_t lines_together = 16;        // of an operand that is packed line by line
constexpr std::int64_t packed_bands = 8;           // bands of rows, for one task
constexpr std::int64_t parts_together = 8;         // of each, because bands share cache lines
constexpr std::int64_t bands_together = many_registers ? 1 : 16;  // stay in the second-level cache for all panels

/// Packs lines of an operand from element `start` on: pack_lines for its element type.
template <class F>
using Pack = void (*)(const void* operand, std::int64_t start, std::int64_t line, std::int64_t term, std::int64_t lines,
                      std::int64_t terms, typename F::Part* to, std::int64_t to_line, std::int64_t to_part);
template <class F, class N>
void pack_from(const void* operand, std::int64_t start, std::int64_t line, std::int64_t term, std::int64_t lines,
               std::int64_t terms, typename F::Part* to, std::int64_t to_line, std::int64_t to_part) {
  pack_lines<F>(Lines<N>{static_cast<const N*>(operand) + start, line, term}, lines, terms, to, to_line, to_part);
}
template <class F>
Pack<F> packing_of(std::optional<Dtype> narrow) {
  if constexpr (std::is_same_v<typename F::Number, float>) {
    if (narrow == Dtype::bfloat16) return pack_from<F, bfloat16>;
    if (narrow == Dtype::int8) return pack_from<F, std::int8_t>;
  }
  return pack_from<F, typename F::Number>;
}

/// Products of the form F. Both operands are cut into blocks of terms. A stage packs some blocks and columns of b for
/// all threads, and the rows of a if they cannot be read in place; then tasks compute groups of rows and columns of c.
/// If c has few rows, a task takes all of them and packs its own columns of b, block by block.
template <class F>
class Tiles {
 public:
  using Part = typename F::Part;
  using Sum = typename F::Sum;

  explicit Tiles(const GemmPlan& plan)
      : plan_(plan),
        panels_(ceiling(plan.n, panel_width<F>)),
        block_parts_(std::min(panel_parts, ceiling(plan.k, F::terms))),
        blocks_each_(ceiling(plan.k, block_parts_ * F::terms)),
        blocks_(blocks_each_ * plan.sums.count()),
        bands_(ceiling(plan.m, tile_rows)),
        least_height_(plan.m / bands_),
        higher_bands_(plan.m % bands_),
        packs_left_(F::must_pack_left || plan.narrow[0] || std::abs(plan.k_strides[0]) >= far ||
                    (!many_registers && std::abs(plan.k_strides[0]) >= rather_far && plan.n >= many_columns)),
        interleaves_(!F::must_pack_left && plan.m_strides[0] == 1),
        pack_{packing_of<F>(plan.narrow[0]), packing_of<F>(plan.narrow[1])},
        stage_blocks_(blocks_),
        stage_panels_(panels_) {
    if (!prepared()) {
      const auto part_bytes = static_cast<std::int64_t>(sizeof(Part)) * together();
      const std::int64_t most_panels = std::max(group_panels, most_tile_bytes / (panel_size() * part_bytes));
      stage_panels_ = ceiling(panels_, ceiling(panels_, most_panels));
      const std::int64_t left = packs_left_ && shares_left() ? bands_ * band_size() : 0;
      const std::int64_t block_bytes = (panel_size() * stage_panels_ + left) * part_bytes;
      stage_blocks_ = std::clamp<std::int64_t>(most_tile_bytes / block_bytes, 1, blocks_);
    }
    if (by_columns()) {
      const std::int64_t most = std::max<std::int64_t>(1, panels_ * plan.outer.count() / most_tasks);
      columns_ = std::min(few_panels, most);
      group_bands_ = bands_;
      row_groups_ = 1;
      return;
    }
    std::int64_t groups =
        std::max(std::clamp<std::int64_t>(plan.m / (4 * tile_rows), 1, 16), ceiling(plan.m, group_rows));
    if (groups > 1) groups = groups / 2 * 2;  // an odd number would leave one of two threads idle
    group_bands_ = ceiling(bands_, groups);
    row_groups_ = ceiling(bands_, group_bands_);
    // Products of few rows are cut along the columns, so that all threads have work.
    const std::int64_t worth = static_cast<std::int64_t>(static_cast<double>(plan.m) * static_cast<double>(plan.n) *
                                                         static_cast<double>(plan.k) / worth_a_task);
    const std::int64_t wanted = std::min({worth, most_tasks, stage_panels_}) / (row_groups_ * together());
    columns_ = ceiling(stage_panels_, std::max(ceiling(stage_panels_, group_panels), wanted));
  }

  /// Whether tasks pack their own columns of b. If c is narrow, too few columns would share the rows of a.
  bool by_columns() const {
    const bool narrow = !many_registers && plan_.m >= 2 * plan_.n;
    return plan_.m <= few_rows && !narrow && !prepared() && !whole_products();
  }
  /// Whether rows of a that must be packed are packed once for all tasks; else each task packs its own.
  bool shares_left() const { return plan_.m <= few_rows; }
  /// Whether b is packed before the runs.
  bool prepared() const { return plan_.fixed == 1; }
  std::size_t prepared_bytes() const { return prepared() ? bytes(plan_.outer.count() * right_size()) : 0; }
  std::size_t scratch_bytes() const {
    return (whole_products() ? static_cast<std::size_t>(plan_.threads) : 1) * memory_bytes();
  }

  void prepare(const void* b, Part* packed) const {
    const Stage all{0, plan_.outer.count(), 0, blocks_, 0, panels_};
    parallel_for(plan_.threads, right_tasks(all), 1, [&](std::int64_t begin, std::int64_t finish) {
      for (std::int64_t task = begin; task < finish; ++task) pack_right(b, all, task, packed);
    });
  }

  void run(const void* a, const void* b, Sum* c, std::byte* scratch, const Part* ready) const {
    const auto memory = [&](std::int64_t worker) {
      std::byte* start = scratch + static_cast<std::size_t>(worker) * memory_bytes();
      auto* left = reinterpret_cast<Part*>(start);
      return Memory{left, reinterpret_cast<Part*>(start + bytes(left_size()))};
    };
    if (!whole_products()) {
      multiply_all({a, b, c, ready}, 0, plan_.outer.count(), memory(0), plan_.threads);
      return;
    }
    parallel_pieces(plan_.threads, plan_.outer.count(), 1, [&](std::int64_t begin, std::int64_t end, std::int64_t i) {
      for (std::int64_t product = begin; product < end; ++product)
        multiply_all({a, b, c, ready}, product, 1, memory(i), 1);
    });
  }

 private:
  struct Arrays {
    const void *a, *b;
    Sum* c;
    const Part* ready;  // b, if it is prepared
  };
  struct Memory {
    Part *left, *right;
  };
  /// What is packed at a time: products, blocks of terms and panels.
  struct Stage {
    std::int64_t first_product, products, first_block, blocks, first_panel, panels;
  };

  /// Whether a task is a whole product, packed by the thread that computes it.
  bool whole_products() const { return plan_.outer.count() >= products_apart; }
  /// How many products are packed together.
  std::int64_t together() const { return whole_products() ? 1 : plan_.outer.count(); }

  /// Bands are the rows of tiles. Their heights differ by at most one row.
  std::int64_t top_of(std::int64_t band) const { return band * least_height_ + std::min(band, higher_bands_); }
  // Sizes in parts:
  std::int64_t band_size() const { return tile_rows * block_parts_; }
  std::int64_t panel_size() const { return block_parts_ * panel_width<F>; }
  std::int64_t right_size() const { return stage_blocks_ * stage_panels_ * panel_size(); }  // of a product, or …
  std::int64_t own_size() const { return columns_ * panel_size(); }                         // … of a task by columns
  /// Of the rows of a that are packed: those of a stage for all products, or one block of the rows of each task.
  std::int64_t left_size() const {
    if (!packs_left_) return 0;
    return band_size() * (shares_left() ? together() * stage_blocks_ * bands_
                                        : (whole_products() ? 1 : plan_.threads) * group_bands_);
  }
  static std::size_t bytes(std::int64_t parts) { return whole_lines(static_cast<std::size_t>(parts) * sizeof(Part)); }
  std::size_t memory_bytes() const {
    const std::int64_t right = prepared() ? 0 : by_columns() ? own_size() * plan_.threads : right_size() * together();
    return bytes(left_size()) + bytes(right);
  }

  struct Block {
    std::array<std::int64_t, 2> offsets;  // of its first term in a and b
    std::int64_t terms;
    std::int64_t parts() const { return ceiling(terms, F::terms); }
  };
  Block block_of(std::int64_t block) const {
    const auto sum = plan_.sums.offsets(block / blocks_each_, plan_.sums.rank());
    const std::int64_t first = block % blocks_each_ * block_parts_ * F::terms;
    return {{sum[0] + first * plan_.k_strides[0], sum[1] + first * plan_.k_strides[1]},
            std::min(block_parts_ * F::terms, plan_.k - first)};
  }
  std::array<std::int64_t, 3> start_of(std::int64_t product) const {
    auto at = plan_.outer.offsets(product, plan_.outer.rank());
    for (std::size_t i = 0; i < 3; ++i) at[i] += plan_.offsets[i];
    return at;
  }

  std::int64_t right_tasks(const Stage& stage) const { return stage.products * stage.blocks * stage.panels; }

  /// Packs panel `p` of a block of b: part after part, with zeros beyond the last column.
  void pack_panel(const void* b, std::int64_t product, const Block& block, std::int64_t p, Part* to) const {
    const std::int64_t columns = std::min(panel_width<F>, plan_.n - p * panel_width<F>);
    if (columns % static_cast<std::int64_t>(xsimd::batch<Part>::size) != 0)
      std::fill_n(to, block.parts() * panel_width<F>, Part{});
    pack_[1](b, start_of(product)[1] + block.offsets[1] + p * panel_width<F> * plan_.n_strides[1], plan_.n_strides[1],
             plan_.k_strides[1], columns, block.terms, to, 1, panel_width<F>);
  }
  void pack_right(const void* b, const Stage& stage, std::int64_t task, Part* packed) const {
    const Block block = block_of(stage.first_block + task / stage.panels % stage.blocks);
    pack_panel(b, stage.first_product + task / stage.panels / stage.blocks, block,
               stage.first_panel + task % stage.panels, packed + task * panel_size());
  }

  /// Tasks that pack bands [first, finish) of a block of a.
  std::int64_t left_tasks(std::int64_t first, std::int64_t finish) const {
    return interleaves_ ? ceiling(finish - first, packed_bands)
                        : ceiling(top_of(finish) - top_of(first), lines_together);
  }
  /// One of these: band after band, part after part, if rows lie next to each other; else row after row.
  void pack_left(const void* a, std::int64_t product, const Block& block, std::int64_t first, std::int64_t finish,
                 std::int64_t task, Part* to) const {
    const std::int64_t line = plan_.m_strides[0], term = plan_.k_strides[0];
    const std::int64_t start = start_of(product)[0] + block.offsets[0];
    if (!interleaves_) {
      const std::int64_t begin = task * lines_together, row = top_of(first) + begin;
      pack_[0](a, start + row * line, line, term, std::min(lines_together, top_of(finish) - row), block.terms,
               to + begin * block_parts_, block_parts_, 1);
      return;
    }
    const std::int64_t begin = first + task * packed_bands, end = std::min(finish, begin + packed_bands);
    for (std::int64_t part = 0; part < block.parts(); part += parts_together)
      for (std::int64_t band = begin; band < end; ++band)
        pack_[0](a, start + top_of(band) * line + part * term, line, term, top_of(band + 1) - top_of(band),
                 std::min(parts_together, block.parts() - part), to + (band - first) * band_size() + part * tile_rows,
                 1, tile_rows);
  }

  /// Computes `products` products from `first` on.
  void multiply_all(const Arrays& arrays, std::int64_t first, std::int64_t products, const Memory& memory,
                    int threads) const {
    for (std::int64_t panel = 0; panel < panels_; panel += stage_panels_)
      for (std::int64_t block = 0; block < blocks_; block += stage_blocks_) {
        const Stage stage{first, products,
                          block, std::min(stage_blocks_, blocks_ - block),
                          panel, std::min(stage_panels_, panels_ - panel)};
        const std::int64_t of_right = prepared() || by_columns() ? 0 : right_tasks(stage);
        const bool left_is_packed = panel > 0 && stage_blocks_ == blocks_;
        const std::int64_t of_left = packs_left_ && shares_left() && !left_is_packed ? left_tasks(0, bands_) : 0;
        const std::int64_t to_pack = of_right + products * stage.blocks * of_left;
        parallel_for(threads, to_pack, 1, [&](std::int64_t begin, std::int64_t finish) {
          for (std::int64_t task = begin; task < finish; ++task)
            if (task < of_right) {
              pack_right(arrays.b, stage, task, memory.right);
            } else {
              const std::int64_t number = (task - of_right) / of_left;  // of a block of all rows
              pack_left(arrays.a, first + number / stage.blocks, block_of(block + number % stage.blocks), 0, bands_,
                        (task - of_right) % of_left, memory.left + number * bands_ * band_size());
            }
        });
        const std::int64_t groups = row_groups_ * ceiling(stage.panels, columns_);
        parallel_pieces(threads, products * groups, 1, [&](std::int64_t begin, std::int64_t end, std::int64_t worker) {
          for (std::int64_t task = begin; task < end; ++task)
            compute(arrays, memory, stage, task / groups, task % groups, worker);
        });
      }
  }

  /// Adds the terms of a stage to one group of rows and columns of a product.
  void compute(const Arrays& arrays, const Memory& memory, const Stage& stage, std::int64_t product, std::int64_t group,
               std::int64_t worker) const {
    const std::int64_t column_groups = ceiling(stage.panels, columns_);
    const std::int64_t left = group % column_groups * columns_;
    const std::int64_t count = std::min(stage.panels - left, columns_);
    const std::int64_t first_panel = stage.first_panel + left;
    for (std::int64_t i = 0; i < stage.blocks; ++i) {
      const Block block = block_of(stage.first_block + i);
      const std::int64_t first = group / column_groups * group_bands_;
      const std::int64_t finish = std::min(bands_, first + group_bands_);
      PackedLeft lefts{nullptr, 0};
      if (packs_left_ && shares_left()) {
        lefts.data = memory.left + (product * stage.blocks + i) * bands_ * band_size();
      } else if (packs_left_) {
        Part* own = memory.left + worker * group_bands_ * band_size();
        for (std::int64_t task = 0; task < left_tasks(first, finish); ++task)
          pack_left(arrays.a, stage.first_product + product, block, first, finish, task, own);
        lefts = {own, first};
      }
      const Part* panels = nullptr;
      if (by_columns()) {
        Part* own = memory.right + worker * own_size();
        for (std::int64_t p = 0; p < count; ++p)
          pack_panel(arrays.b, stage.first_product + product, block, first_panel + p, own + p * panel_size());
        panels = own;
      } else {
        const Part* all = prepared() ? arrays.ready + (stage.first_product + product) * right_size()
                                     : memory.right + product * stage.blocks * stage.panels * panel_size();
        panels = all + (i * stage.panels + left) * panel_size();
      }
      fill(arrays, stage.first_product + product, stage.first_block + i, first, finish, first_panel, count, lefts,
           panels);
    }
  }

  /// Rows of a block of a that are packed, from a band on; without data, rows are read in place.
  struct PackedLeft {
    const Part* data;
    std::int64_t first_band;
  };
  struct LeftRows {
    const Part* data;
    std::int64_t row, part;  // strides
  };

  LeftRows rows_of(const void* a, std::int64_t start, std::int64_t band, const PackedLeft& packed) const {
    if constexpr (!F::must_pack_left) {
      if (!packs_left_)
        return {static_cast<const Part*>(a) + start + top_of(band) * plan_.m_strides[0], plan_.m_strides[0],
                plan_.k_strides[0]};
      if (interleaves_) return {packed.data + (band - packed.first_band) * band_size(), 1, tile_rows};
    }
    return {packed.data + (top_of(band) - top_of(packed.first_band)) * block_parts_, block_parts_, 1};
  }

  /// Adds a block to bands [first, finish) of c, and `count` panels of columns.
  void fill(const Arrays& arrays, std::int64_t product, std::int64_t number, std::int64_t first, std::int64_t finish,
            std::int64_t first_panel, std::int64_t count, const PackedLeft& lefts, const Part* panels) const {
    const auto start = start_of(product);
    const Block block = block_of(number);
    const bool add = plan_.accumulate || number > 0;
    for (std::int64_t some = first; some < finish; some += bands_together)
      for (std::int64_t p = 0; p < count; ++p)
        for (std::int64_t band = some; band < std::min(finish, some + bands_together); ++band)
          tile(top_of(band + 1) - top_of(band), rows_of(arrays.a, start[0] + block.offsets[0], band, lefts),
               panels + p * panel_size(), block.parts(),
               arrays.c + start[2] + top_of(band) * plan_.m_strides[2] + (first_panel + p) * panel_width<F>,
               plan_.n - (first_panel + p) * panel_width<F>, add);
  }

  /// Computes a tile of c, of which the first `columns` columns exist.
  void tile(std::int64_t rows, const LeftRows& from, const Part* panel, std::int64_t parts, Sum* c,
            std::int64_t columns, bool add) const {
    constexpr auto width = static_cast<std::int64_t>(xsimd::batch<Part>::size);
    const auto row = static_cast<std::size_t>(rows - 1);
    const Multiply<F> go = columns > width ? multiply_rows<F, row_registers>[row] : multiply_rows<F, 1>[row];
    const std::int64_t c_row = plan_.m_strides[2];
    if (columns == width || columns >= panel_width<F>) {
      go(parts, from.data, from.row, from.part, panel, c, c_row, add);
      return;
    }
    Sum whole[tile_rows * panel_width<F>];
    go(parts, from.data, from.row, from.part, panel, whole, panel_width<F>, false);
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) {
        Sum& to = c[i * c_row + j];
        to = add ? to + whole[i * panel_width<F> + j] : whole[i * panel_width<F> + j];
      }
  }

  GemmPlan plan_;
  std::int64_t panels_;
  std::int64_t block_parts_, blocks_each_, blocks_;   ///< Parts of a block; blocks of one sum, and of all.
  std::int64_t bands_, least_height_, higher_bands_;  ///< The first bands are one row higher.
  bool packs_left_, interleaves_;
  std::array<Pack<F>, 2> pack_;
  std::int64_t stage_blocks_, stage_panels_;
  std::int64_t group_bands_ = 0, row_groups_ = 0;  ///< Bands of a group, and groups.
  std::int64_t columns_ = 0;                       ///< Panels of a group.
};

template <class F>
MatrixProducts<typename F::Number> made(const GemmPlan& plan) {
  using T = typename F::Number;
  using Part = typename F::Part;
  const Tiles<F> tiles(with_columns_running(plan));
  MatrixProducts<T> made;
  made.run = [tiles, swapped = !columns_run(plan)](const void* a, const void* b, T* c, void* scratch,
                                                   const void* prepared) {
    tiles.run(swapped ? b : a, swapped ? a : b, c, static_cast<std::byte*>(scratch),
              static_cast<const Part*>(prepared));
  };
  made.scratch_bytes = tiles.scratch_bytes();
  made.prepared_bytes = tiles.prepared_bytes();
  if (tiles.prepared())
    made.prepare = [tiles](const void* fixed, void* prepared) { tiles.prepare(fixed, static_cast<Part*>(prepared)); };
  return made;
}
}  // namespace

bool tiles_suit(const GemmPlan& given) {
  if (xsimd::batch<float>::size < 8) return false;
  const GemmPlan plan = with_columns_running(given);
  constexpr std::int64_t one_register = xsimd::batch<float>::size;  // of columns; BLAS is faster for so few
  return plan.m >= 4 && plan.n > one_register && plan.k >= 8;
}

template <class T>
MatrixProducts<T> make_tiles(const GemmPlan& plan) {
  return made<Plain<T>>(plan);
}
template MatrixProducts<float> make_tiles<float>(const GemmPlan&);
template MatrixProducts<double> make_tiles<double>(const GemmPlan&);

bool bfloat16_tiles_suit([[maybe_unused]] const GemmPlan& plan) {
#ifdef __AVX512F__
  constexpr double worth_packing = 1 << 18;  // multiply-adds; packing both operands of fewer takes longer than it saves
  const double work = static_cast<double>(plan.m) * static_cast<double>(plan.n) * static_cast<double>(plan.k);
  return instruction_set() >= InstructionSet::avx512_bf16 && work >= worth_packing && tiles_suit(plan);
#else
  return false;
#endif
}

MatrixProducts<float> make_bfloat16_tiles([[maybe_unused]] const GemmPlan& plan) {
#ifdef __AVX512F__
  return made<Pairs>(plan);
#else
  return {};
#endif
}

}  // namespace xtape
