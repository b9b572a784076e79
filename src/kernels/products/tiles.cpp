#include <algorithm>

#include "base/system/instruction_set.hpp"
#include "base/threads/threads.hpp"
#include "kernels/products/gemm.hpp"
#include "kernels/products/tile_operands.hpp"
#include "kernels/products/tile_tasks.hpp"
#include "kernels/table/scratch.hpp"

namespace xtape {

namespace {
constexpr std::int64_t group_rows = 128;  // rows per task, which share the panels of b in the second-level cache
constexpr std::int64_t group_panels = 32;
constexpr double worth_a_task = 1 << 20;                     // multiply-adds
constexpr std::int64_t usual_tasks = 8, tasks_a_thread = 3;  // the division into tasks does not change results
constexpr std::int64_t products_apart = 16;  // of so many products, and two a thread, each task computes a whole one
constexpr std::int64_t most_tile_bytes = 4 << 20;  // bytes of operands that are packed at the same time
constexpr std::size_t most_bytes_each = 1 << 20;   // bytes of b that each thread reads
constexpr std::int64_t most_row_bytes = 1 << 20;   // bytes of the rows that tasks by columns share
constexpr std::int64_t tiles_a_stage = 32;         // tiles of a thread between two meetings
constexpr std::int64_t few_rows = 1024;            // up to this many rows, a task packs its own columns
constexpr std::int64_t few_panels = 8;             // panels of a task with all rows, to fit the second-level cache
constexpr std::int64_t bands_in_place = 16;  // up to this many bands read a gathered panel in place, without packing
// With AVX2, tasks that do not compute all rows process this many bands together. These bands stay in the second-level
// cache for all panels.
constexpr std::int64_t bands_together = 16;

/// Products in the format F. Both operands are divided into blocks of terms. A stage packs some blocks and columns of b
/// for all threads, and the rows of a if they cannot be read in place. Tasks then compute groups of rows and columns of
/// c. If c has few rows, a task packs its own columns of b, block by block, and takes all rows if there are enough
/// columns for the threads.
template <class F>
class Tiles {
 public:
  using Part = typename F::Part;
  using Sum = typename F::Sum;
  using Block = typename TileOperands<F>::Block;
  using LeftRows = typename TileOperands<F>::LeftRows;
  /// Whether the tiles of all bands, not only the first, may read columns in place.
  static constexpr bool may_stay = std::is_same_v<Part, float>;

  [[gnu::cold]] explicit Tiles(const GemmPlan& plan)
      : plan_(plan), operands_(plan), stage_blocks_(operands_.blocks()), stage_panels_(operands_.panels()) {
    const std::int64_t panels = operands_.panels(), bands = operands_.bands().count;
    const std::int64_t worth = static_cast<std::int64_t>(static_cast<double>(plan.m) * static_cast<double>(plan.n) *
                                                         static_cast<double>(plan.k) / worth_a_task);
    const std::int64_t tasks = std::max(usual_tasks, tasks_a_thread * plan.threads);
    if (!prepared()) {
      // Tasks by columns pack their own panels, so only the rows that they share must fit the second-level cache.
      const auto part_bytes = static_cast<std::int64_t>(sizeof(Part)) * together();
      const std::int64_t most_panels = std::max(group_panels, most_tile_bytes / (operands_.panel_size() * part_bytes));
      if (!by_columns()) stage_panels_ = ceiling(panels, ceiling(panels, most_panels));
      const std::int64_t left = by_columns() || shares_left() ? bands * operands_.band_size() : 0;
      const std::int64_t right = by_columns() ? 0 : operands_.panel_size() * stage_panels_;
      const std::int64_t most = by_columns() ? most_row_bytes : most_tile_bytes;
      // A stage of a large product must be worth a meeting of the threads.
      const std::int64_t worth_meeting =
          by_columns() ? ceiling(tiles_a_stage * plan.threads, bands * panels * together()) : 1;
      stage_blocks_ =
          std::clamp<std::int64_t>(std::max(worth_meeting, most / ((left + right) * part_bytes)), 1, stage_blocks_);
    }
    if (by_columns()) {
      const std::int64_t all_panels = panels * plan.outer.count();
      const std::int64_t most = std::max<std::int64_t>(1, all_panels / std::min(tasks, std::max(worth, usual_tasks)));
      columns_ = std::min({few_panels, most, panels});
      // If the columns are too few for the threads, several tasks pack the same columns, each for its own rows.
      const bool all_busy = plan.threads == 1 || all_panels / columns_ >= 2 * plan.threads;
      row_groups_ = all_busy ? 1 : std::clamp<std::int64_t>(std::min(tasks, worth) / all_panels, 1, ceiling(bands, 4));
      group_bands_ = ceiling(bands, row_groups_);
      divide_better();
      stays_in_place_ = may_stay && bands > 1 && bands <= bands_in_place && operands_.stays_in_cache();
      return;
    }
    row_groups_ = std::max(std::clamp<std::int64_t>(plan.m / (4 * tile_rows), 1, 16), ceiling(plan.m, group_rows));
    if (row_groups_ > 1) row_groups_ = row_groups_ / 2 * 2;  // an odd number would leave one of two threads idle
    // Products with few rows are divided along the columns, so that all threads have work. If there are enough columns,
    // they are not divided along the rows, because groups of few bands differ too much in size.
    const std::int64_t wanted = std::min({worth, tasks, stage_panels_});
    if (plan.m <= group_rows && wanted == tasks) row_groups_ = 1;
    group_bands_ = ceiling(bands, row_groups_);
    columns_ =
        ceiling(stage_panels_, std::max(ceiling(stage_panels_, group_panels), wanted / (row_groups_ * together())));
    divide_better();
  }

  /// Whether b is packed before the runs.
  bool prepared() const { return plan_.fixed == 1; }
  std::size_t prepared_bytes() const { return prepared() ? bytes(plan_.outer.count() * right_size()) : 0; }
  std::size_t scratch_bytes() const {
    return (whole_products() ? static_cast<std::size_t>(plan_.threads) : 1) * memory_bytes();
  }

  void prepare(const void* b, Part* packed) const {
    const Stage all{0, plan_.outer.count(), 0, operands_.blocks(), 0, operands_.panels()};
    parallel_for(plan_.threads, right_tasks(all), 1, [&](std::int64_t begin, std::int64_t finish) {
      for (std::int64_t task = begin; task < finish; ++task) pack_right(b, all, task, packed);
    });
  }

  /// Whether `rows` can compute some rows of c: one product of rows in place by a prepared b. False if b is so large
  /// that threads should rather share its columns than read all of it.
  bool has_rows() const {
    return prepared() && plan_.outer.count() == 1 && !operands_.packs_left() && prepared_bytes() <= most_bytes_each;
  }
  /// Computes the rows [begin, end) of c.
  void rows(const void* a, Sum* c, const Part* ready, std::int64_t begin, std::int64_t end) const {
    const Bands bands(end - begin);
    for (std::int64_t i = 0; i < operands_.blocks(); ++i)
      // The panels may be too large for the second-level cache, so each is read once.
      for (std::int64_t panel = 0; panel < operands_.panels(); ++panel) {
        const Block block = operands_.block_of(0, i);
        const Columns<F> right{{ready + (i * operands_.panels() + panel) * operands_.panel_size()}, nullptr, nullptr};
        const std::int64_t columns = plan_.n - panel * panel_width<F>;
        for (std::int64_t band = 0; band < bands.count; ++band) {
          const std::int64_t row = begin + bands.top_of(band), height = bands.height_of(band);
          const LeftRows left = operands_.rows_in_place(a, block, row);
          Sum* to = c + block.offsets[2] + row * plan_.m_strides[2] + panel * panel_width<F>;
          multiply_tile<F>(packed_tile(height, columns), height, columns, block.parts(), left.data, left.row, left.part,
                           right, to, plan_.m_strides[2], plan_.accumulate || i > 0);
        }
      }
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
  /// Divides the tiles in another way if threads would wait for others.
  void divide_better() {
    if (plan_.threads == 1 || whole_products()) return;
    constexpr double reads_panel = 0.25, packs_panel = 1;
    const std::int64_t bands = operands_.bands().count;
    const TiledProducts tiles{.products = together(),
                              .bands = bands,
                              .panels = stage_panels_,
                              .threads = plan_.threads,
                              .most_panels = by_columns() ? few_panels : group_panels,
                              .panel_cost = by_columns() ? packs_panel : reads_panel};
    const TileTasks tasks = tiles.best({group_bands_, columns_});
    columns_ = tasks.panels;
    row_groups_ = ceiling(bands, tasks.bands);
    group_bands_ = ceiling(bands, row_groups_);
  }

  struct Arrays {
    const void *a, *b;
    Sum* c;
    const Part* ready;  // b, if it is prepared
  };
  struct Memory {
    Part *left, *right;
  };
  /// The data that is packed at the same time: products, blocks of terms and panels.
  struct Stage {
    std::int64_t first_product, products, first_block, blocks, first_panel, panels;
  };

  /// A block of a group of rows and columns.
  struct BlockTask {
    Block block;
    bool add;
    std::int64_t first_band, end_band, first_panel, panels;
    const Part* lefts;  ///< Packed rows of a, from band `packed_from` on. Null if a is read in place.
    std::int64_t packed_from;
    const Part* rights;  ///< The packed panels.
    Part* own;  ///< Memory for the panels of a task by columns. Tiles of the first band write in-place panels to it.
  };

  /// Whether a task computes a whole product. Its thread also packs the operands.
  bool whole_products() const {
    return plan_.outer.count() >= std::max<std::int64_t>(products_apart, 2 * plan_.threads);
  }
  /// The number of threads that share the memory of a product.
  std::int64_t workers() const { return whole_products() ? 1 : plan_.threads; }
  /// The number of products that are packed together.
  std::int64_t together() const { return whole_products() ? 1 : plan_.outer.count(); }
  /// Whether tasks pack their own columns of b. False if c has few columns, because too few columns would then share
  /// the rows of a.
  bool by_columns() const {
    const bool narrow = !large_caches && plan_.m >= 2 * plan_.n;
    return plan_.m <= few_rows && !narrow && !prepared();
  }
  /// Whether the rows of a are packed once for all tasks. If the rows are packed and this function returns false, each
  /// task packs its own rows.
  bool shares_left() const { return operands_.packs_left() && plan_.m <= few_rows; }

  // Sizes in parts:
  std::int64_t right_size() const { return stage_blocks_ * stage_panels_ * operands_.panel_size(); }  // per product
  std::int64_t own_size() const { return columns_ * operands_.panel_size(); }  // per task by columns
  /// The size of the packed rows of a: all rows of a stage's products, or one block of rows per task.
  std::int64_t left_size() const {
    if (!operands_.packs_left()) return 0;
    return operands_.band_size() *
           (shares_left() ? together() * stage_blocks_ * operands_.bands().count : workers() * group_bands_);
  }
  static std::size_t bytes(std::int64_t parts) { return whole_lines(static_cast<std::size_t>(parts) * sizeof(Part)); }
  std::size_t memory_bytes() const {
    const std::int64_t right = prepared() ? 0 : by_columns() ? own_size() * workers() : right_size() * together();
    return bytes(left_size()) + bytes(right);
  }

  std::int64_t right_tasks(const Stage& stage) const { return stage.products * stage.blocks * stage.panels; }
  void pack_right(const void* b, const Stage& stage, std::int64_t task, Part* packed) const {
    const std::int64_t block = task / stage.panels, panel = task % stage.panels;
    operands_.pack_panel(
        b, operands_.block_of(stage.first_product + block / stage.blocks, stage.first_block + block % stage.blocks),
        stage.first_panel + panel, packed + task * operands_.panel_size());
  }

  /// Computes `products` products from `first` on.
  void multiply_all(const Arrays& arrays, std::int64_t first, std::int64_t products, const Memory& memory,
                    int threads) const {
    const std::int64_t bands = operands_.bands().count;
    for (std::int64_t panel = 0; panel < operands_.panels(); panel += stage_panels_)
      for (std::int64_t block = 0; block < operands_.blocks(); block += stage_blocks_) {
        const Stage stage{first, products,
                          block, std::min(stage_blocks_, operands_.blocks() - block),
                          panel, std::min(stage_panels_, operands_.panels() - panel)};
        const std::int64_t of_right = prepared() || by_columns() ? 0 : right_tasks(stage);
        const bool left_is_packed = panel > 0 && stage_blocks_ == operands_.blocks();
        const std::int64_t of_left = shares_left() && !left_is_packed ? operands_.left_tasks(0, bands) : 0;
        const std::int64_t to_pack = of_right + products * stage.blocks * of_left;
        parallel_for(threads, to_pack, 1, [&](std::int64_t begin, std::int64_t finish) {
          for (std::int64_t task = begin; task < finish; ++task)
            if (task < of_right) {
              pack_right(arrays.b, stage, task, memory.right);
            } else {
              const std::int64_t number = (task - of_right) / of_left;  // counts the products' blocks of rows
              operands_.pack_left(
                  arrays.a, operands_.block_of(first + number / stage.blocks, block + number % stage.blocks), 0, bands,
                  (task - of_right) % of_left, memory.left + number * bands * operands_.band_size());
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
    const std::int64_t column_groups = ceiling(stage.panels, columns_), bands = operands_.bands().count;
    const std::int64_t left = group % column_groups * columns_;
    BlockTask piece{};
    const std::int64_t rows = group / column_groups;
    piece.first_band = bands * rows / row_groups_;
    piece.end_band = bands * (rows + 1) / row_groups_;
    piece.first_panel = stage.first_panel + left;
    piece.panels = std::min(stage.panels - left, columns_);
    for (std::int64_t i = 0; i < stage.blocks; ++i) {
      piece.block = operands_.block_of(stage.first_product + product, stage.first_block + i);
      piece.add = plan_.accumulate || stage.first_block + i > 0;
      if (shares_left()) {
        piece.lefts = memory.left + (product * stage.blocks + i) * bands * operands_.band_size();
      } else if (operands_.packs_left()) {
        Part* own = memory.left + worker * group_bands_ * operands_.band_size();
        for (std::int64_t task = 0; task < operands_.left_tasks(piece.first_band, piece.end_band); ++task)
          operands_.pack_left(arrays.a, piece.block, piece.first_band, piece.end_band, task, own);
        piece.lefts = own;
        piece.packed_from = piece.first_band;
      }
      if (by_columns()) {
        piece.own = memory.right + worker * own_size();
        piece.rights = piece.own;
        for (std::int64_t p = 0; p < piece.panels; ++p)
          if (!operands_.panel_in_place(piece.first_panel + p))
            operands_.pack_panel(arrays.b, piece.block, piece.first_panel + p, piece.own + p * operands_.panel_size());
      } else {
        const Part* all = prepared() ? arrays.ready + (stage.first_product + product) * right_size()
                                     : memory.right + product * stage.blocks * stage.panels * operands_.panel_size();
        piece.rights = all + (i * stage.panels + left) * operands_.panel_size();
      }
      fill(arrays, piece);
    }
  }

  /// Adds a block to the bands and panels of a task.
  void fill(const Arrays& arrays, const BlockTask& piece) const {
    // The larger operand stays in the second-level cache. In a task by columns, this is the panels. In any other task,
    // this is some bands.
    const std::int64_t step = large_caches || by_columns() ? 1 : bands_together;
    for (std::int64_t some = piece.first_band; some < piece.end_band; some += step)
      for (std::int64_t p = 0; p < piece.panels; ++p)
        for (std::int64_t band = some; band < std::min(piece.end_band, some + step); ++band)
          tile(arrays, piece, band, p);
  }

  /// Returns the function of a tile with packed columns.
  static Multiply<F> packed_tile(std::int64_t rows, std::int64_t columns) {
    constexpr auto width = static_cast<std::int64_t>(xsimd::batch<Part>::size);
    const auto row = static_cast<std::size_t>(rows - 1);
    return columns > width ? multiply_rows<F, row_registers>[row] : multiply_rows<F, 1>[row];
  }

  [[gnu::always_inline]] void tile(const Arrays& arrays, const BlockTask& piece, std::int64_t band,
                                   std::int64_t p) const {
    const std::int64_t panel = piece.first_panel + p, rows = operands_.bands().height_of(band),
                       c_row = plan_.m_strides[2];
    const std::int64_t columns = plan_.n - panel * panel_width<F>;  // without padding
    const auto row = static_cast<std::size_t>(rows - 1);
    const LeftRows left = piece.lefts == nullptr
                              ? operands_.rows_in_place(arrays.a, piece.block, operands_.bands().top_of(band))
                              : operands_.packed_rows(piece.lefts, piece.packed_from, band);
    Columns<F> right{{piece.rights + p * operands_.panel_size()}, nullptr, nullptr};
    Multiply<F> go = packed_tile(rows, columns);
    if constexpr (!F::must_pack)
      if (piece.own != nullptr && operands_.panel_in_place(panel) && (stays_in_place_ || band == piece.first_band)) {
        right = operands_.columns_in_place(arrays.b, piece.block, panel, piece.own + p * operands_.panel_size());
        go = multiply_rows<F, row_registers, Reading::packs>[row];
        if constexpr (may_stay)
          if (stays_in_place_) go = multiply_rows<F, row_registers, Reading::in_place>[row];
      }
    const std::int64_t parts = piece.block.parts();
    Sum* c = arrays.c + piece.block.offsets[2] + operands_.bands().top_of(band) * c_row + panel * panel_width<F>;
    multiply_tile<F>(go, rows, columns, parts, left.data, left.row, left.part, right, c, c_row, piece.add);
  }

  GemmPlan plan_;
  TileOperands<F> operands_;
  std::int64_t stage_blocks_, stage_panels_;
  std::int64_t row_groups_ = 0, group_bands_ = 0;  ///< Groups of bands; the number of bands in the largest group.
  std::int64_t columns_ = 0;                       ///< Panels per group.
  bool stays_in_place_ = false;                    ///< Whether tiles of all bands read columns in place.
};

template <class F>
[[gnu::cold]] MatrixProducts<typename F::Number> made(const GemmPlan& plan) {
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
  if (tiles.has_rows() && columns_run(plan))
    made.rows = [tiles](const void* a, T* c, const void* prepared, std::int64_t begin, std::int64_t end) {
      tiles.rows(a, c, static_cast<const Part*>(prepared), begin, end);
    };
  if (tiles.prepared())
    made.prepare = [tiles](const void* fixed, void* prepared) { tiles.prepare(fixed, static_cast<Part*>(prepared)); };
  return made;
}
}  // namespace

template <class T>
MatrixProducts<T> make_tiles(const GemmPlan& plan) {
  return made<Plain<T>>(plan);
}
template MatrixProducts<float> make_tiles<float>(const GemmPlan&);
template MatrixProducts<double> make_tiles<double>(const GemmPlan&);

bool bfloat16_tiles_suit([[maybe_unused]] const GemmPlan& plan) {
#ifdef __AVX512F__
  // Multiply-adds. For fewer, packing both operands takes longer than it saves.
  constexpr double worth_packing = 1 << 18;
  const double work = static_cast<double>(plan.m) * static_cast<double>(plan.n) * static_cast<double>(plan.k);
  return instruction_set() >= InstructionSet::avx512_bf16 && work >= worth_packing;
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
