#include "product_tiles.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <xsimd/xsimd.hpp>

#include "scratch.hpp"
#include "threads.hpp"

namespace xtape {

namespace {
constexpr bool many_registers = xsimd::batch<float>::size >= 16;  // AVX-512 has 32, of 64 bytes
constexpr int tile_rows = many_registers ? 14 : 6;  // two registers per row, two for b, one or two for a
constexpr int row_registers = 2;                    // registers per row of a tile
constexpr std::int64_t panel_terms =
    256;                                  // terms of b packed together: a panel has 32 KiB, for the first-level cache
constexpr std::int64_t group_rows = 128;  // rows of a task, which share the panels of b in the second-level cache
constexpr std::int64_t group_panels = 32;
constexpr double worth_a_task = 1 << 20;  // multiply-adds
constexpr std::int64_t most_tasks = 8;
constexpr std::int64_t products_apart = 16;  // with this many products or more, a task is a whole product

/// The columns of a panel: as wide as a tile.
template <class T>
constexpr std::int64_t panel_width = row_registers* static_cast<std::int64_t>(xsimd::batch<T>::size);

/// Computes a tile of c, `rows` rows of `registers` registers, over `terms` terms of one panel of b; adds to c if
/// `add`.
template <class T, int rows, int registers>
void multiply(std::int64_t terms, const T* a, std::int64_t a_row, std::int64_t a_term, const T* panel, T* c,
              std::int64_t c_row, bool add) {
  using Batch = xsimd::batch<T>;
  constexpr auto width = static_cast<std::int64_t>(Batch::size);
  Batch sums[rows][registers];
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i)
    for (int r = 0; r < registers; ++r) sums[i][r] = Batch(T{});
  for (std::int64_t k = 0; k < terms; ++k) {
    Batch columns[registers];
    for (int r = 0; r < registers; ++r) columns[r] = Batch::load_aligned(panel + k * panel_width<T> + r * width);
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
      const Batch scalar(a[i * a_row + k * a_term]);
      for (int r = 0; r < registers; ++r) sums[i][r] = xsimd::fma(scalar, columns[r], sums[i][r]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i)
    for (int r = 0; r < registers; ++r) {
      T* to = c + i * c_row + r * width;
      (add ? Batch::load_unaligned(to) + sums[i][r] : sums[i][r]).store_unaligned(to);
    }
}

template <class T>
using Multiply = void (*)(std::int64_t, const T*, std::int64_t, std::int64_t, const T*, T*, std::int64_t, bool);

/// The instances of multiply for 1, 2, … rows.
template <class T, int registers, int... i>
constexpr std::array<Multiply<T>, sizeof...(i)> by_rows(std::integer_sequence<int, i...> /*rows*/) {
  return {multiply<T, i + 1, registers>...};
}
template <class T, int registers>
constexpr std::array<Multiply<T>, tile_rows> multiply_rows =
    by_rows<T, registers>(std::make_integer_sequence<int, tile_rows>{});

template <class T>
class Tiles {
 public:
  explicit Tiles(const GemmPlan& plan)
      : plan_(plan),
        panels_(ceiling(plan.n, panel_width<T>)),
        blocks_(ceiling(plan.k, panel_terms)),
        packed_(plan.sums.count() * plan.k * panels_ * panel_width<T>) {
    std::int64_t groups =
        std::max(std::clamp<std::int64_t>(plan.m / (4 * tile_rows), 1, 16), ceiling(plan.m, group_rows));
    if (groups > 1) groups = groups / 2 * 2;  // an odd number would leave one of two threads idle
    rows_ = ceiling(plan.m, groups);
    row_groups_ = ceiling(plan.m, rows_);
    // Products of few rows are cut along the columns, so that all threads have work.
    const std::int64_t worth = static_cast<std::int64_t>(static_cast<double>(plan.m) * static_cast<double>(plan.n) *
                                                         static_cast<double>(plan.k) / worth_a_task);
    const std::int64_t wanted = std::min({worth, most_tasks, panels_}) / (row_groups_ * plan.outer.count());
    columns_ = ceiling(panels_, std::max(ceiling(panels_, group_panels), wanted));
    panel_groups_ = ceiling(panels_, columns_);
  }

  /// Whether b is packed before the runs.
  bool prepared() const { return plan_.fixed == 1; }
  std::size_t prepared_bytes() const { return prepared() ? bytes_of(plan_.outer.count()) : 0; }
  std::size_t scratch_bytes() const {
    if (prepared()) return 0;
    return bytes_of(whole_products() ? std::min<std::int64_t>(plan_.threads, plan_.outer.count())
                                     : plan_.outer.count());
  }

  void prepare(const T* b, T* packed) const {
    parallel_for(plan_.threads, plan_.outer.count() * panels_, 1, [&](std::int64_t begin, std::int64_t finish) {
      for (std::int64_t task = begin; task < finish; ++task)
        pack(b + start_of(task / panels_)[1], task % panels_, packed + task / panels_ * packed_);
    });
  }

  void run(const T* a, const T* b, T* c, T* scratch, const T* ready) const {
    const std::int64_t products = plan_.outer.count();
    const std::int64_t groups = row_groups_ * panel_groups_;
    if (whole_products()) {
      parallel_pieces(plan_.threads, products, 1, [&](std::int64_t begin, std::int64_t finish, std::int64_t piece) {
        for (std::int64_t product = begin; product < finish; ++product) {
          const auto at = start_of(product);
          const T* packed = prepared() ? ready + product * packed_ : scratch + piece * packed_;
          if (!prepared())
            for (std::int64_t p = 0; p < panels_; ++p) pack(b + at[1], p, scratch + piece * packed_);
          for (std::int64_t group = 0; group < groups; ++group) fill(a + at[0], packed, c + at[2], group);
        }
      });
      return;
    }
    if (!prepared()) prepare(b, scratch);
    const T* packed = prepared() ? ready : scratch;
    parallel_for(plan_.threads, products * groups, 1, [&](std::int64_t begin, std::int64_t finish) {
      for (std::int64_t task = begin; task < finish; ++task) {
        const auto at = start_of(task / groups);
        fill(a + at[0], packed + task / groups * packed_, c + at[2], task % groups);
      }
    });
  }

 private:
  /// Whether a task is a whole product, whose b is packed by the thread that runs it.
  bool whole_products() const { return plan_.outer.count() >= products_apart; }
  std::size_t bytes_of(std::int64_t products) const { return static_cast<std::size_t>(products * packed_) * sizeof(T); }

  std::array<std::int64_t, 3> start_of(std::int64_t product) const {
    auto at = plan_.outer.offsets(product, plan_.outer.rank());
    for (std::size_t i = 0; i < 3; ++i) at[i] += plan_.offsets[i];
    return at;
  }

  /// Calls visit(at, first, terms, before) for each block of summed terms: `at` are the offsets in a and b of the
  /// product to which the terms belong, `first` the first term, `terms` their number, `before` the number of elements
  /// that are packed before them.
  template <class Visit>
  void for_blocks(const Visit& visit) const {
    for (std::int64_t s = 0; s < plan_.sums.count(); ++s) {
      const auto at = plan_.sums.offsets(s, plan_.sums.rank());
      for (std::int64_t block = 0; block < blocks_; ++block) {
        const std::int64_t first = block * panel_terms;
        visit(at, first, std::min(panel_terms, plan_.k - first), (s * plan_.k + first) * panels_ * panel_width<T>);
      }
    }
  }

  /// Packs panel `p` of b, one term after the other, with zeros beyond the last column of b.
  void pack(const T* b, std::int64_t p, T* packed) const {
    const std::int64_t columns = std::min(panel_width<T>, plan_.n - p * panel_width<T>);
    constexpr auto width = static_cast<std::int64_t>(xsimd::batch<T>::size);
    const std::int64_t row = plan_.k_strides[1], step = plan_.n_strides[1];
    for_blocks([&](const std::array<std::int64_t, 2>& at, std::int64_t first, std::int64_t terms, std::int64_t before) {
      const T* from = b + at[1] + first * row + p * panel_width<T> * step;
      T* to = packed + before + p * terms * panel_width<T>;
      if (columns % width != 0) std::fill_n(to, terms * panel_width<T>, T{});
      if (step == 1) {
        const auto copy = [&](auto constant) {  // a compile-time count avoids a call to memcpy for each row
          const std::int64_t count = constant;
          for (std::int64_t k = 0; k < terms; ++k) std::copy_n(from + k * row, count, to + k * panel_width<T>);
        };
        if (columns == panel_width<T>)
          copy(std::integral_constant<std::int64_t, panel_width<T>>{});
        else if (columns == width)
          copy(std::integral_constant<std::int64_t, width>{});
        else
          copy(columns);
        return;
      }
      constexpr std::int64_t square = 16;  // a cache line is read completely before the next
      for (std::int64_t begin = 0; begin < terms; begin += square)
        for (std::int64_t j = 0; j < columns; ++j)
          for (std::int64_t k = begin; k < std::min(terms, begin + square); ++k)
            to[k * panel_width<T> + j] = from[k * row + j * step];
    });
  }

  /// Computes one group of rows and panels of c.
  void fill(const T* a, const T* packed, T* c, std::int64_t group) const {
    const std::int64_t top = group / panel_groups_ * rows_;
    const std::int64_t rows = std::min(rows_, plan_.m - top);
    const std::int64_t left = group % panel_groups_ * columns_;
    const std::int64_t right = std::min(panels_, left + columns_);
    const std::int64_t bands = ceiling(rows, tile_rows);
    bool add = plan_.accumulate;
    for_blocks([&](const std::array<std::int64_t, 2>& at, std::int64_t first, std::int64_t terms, std::int64_t before) {
      for (std::int64_t band = 0; band < bands; ++band) {  // the heights of bands differ by at most one row
        const std::int64_t begin = top + rows * band / bands, end = top + rows * (band + 1) / bands;
        const T* x = a + at[0] + begin * plan_.m_strides[0] + first * plan_.k_strides[0];
        for (std::int64_t p = left; p < right; ++p)
          tile(end - begin, x, packed + before + p * terms * panel_width<T>, terms,
               c + begin * plan_.m_strides[2] + p * panel_width<T>, plan_.n - p * panel_width<T>, add);
      }
      add = true;
    });
  }

  /// Computes a tile of c, of which the first `columns` columns exist.
  void tile(std::int64_t rows, const T* a, const T* panel, std::int64_t terms, T* c, std::int64_t columns,
            bool add) const {
    constexpr auto width = static_cast<std::int64_t>(xsimd::batch<T>::size);
    const auto row = static_cast<std::size_t>(rows - 1);
    const Multiply<T> go = columns > width ? multiply_rows<T, row_registers>[row] : multiply_rows<T, 1>[row];
    const std::int64_t a_row = plan_.m_strides[0], a_term = plan_.k_strides[0], c_row = plan_.m_strides[2];
    if (columns == width || columns >= panel_width<T>) {
      go(terms, a, a_row, a_term, panel, c, c_row, add);
      return;
    }
    T whole[tile_rows * panel_width<T>];
    go(terms, a, a_row, a_term, panel, whole, panel_width<T>, false);
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) {
        T& to = c[i * c_row + j];
        to = add ? to + whole[i * panel_width<T> + j] : whole[i * panel_width<T> + j];
      }
  }

  GemmPlan plan_;
  std::int64_t panels_, blocks_;
  std::int64_t packed_;  ///< Elements of packed b, for one product.
  std::int64_t rows_ = 0, row_groups_ = 0;        ///< Rows of a group, and groups.
  std::int64_t columns_ = 0, panel_groups_ = 0;  ///< Panels of a group, and groups.
};
}  // namespace

bool tiles_suit(const GemmPlan& given) {
  if (xsimd::batch<float>::size < 8) return false;
  const GemmPlan plan = with_columns_running(given);
  constexpr std::int64_t most_packed = 1 << 20;  // elements of b; more do not stay in any cache
  constexpr std::int64_t far = 4096;             // with strides this large in a, few cache lines are reused
  constexpr std::int64_t one_register = 16;      // columns; such narrow tiles are slower than BLAS
  const std::int64_t packed_at_once = plan.outer.count() >= products_apart ? 1 : plan.outer.count();
  return plan.m >= 4 && plan.n > one_register && plan.k >= 8 && std::abs(plan.k_strides[0]) < far &&
         packed_at_once * plan.sums.count() * plan.k * plan.n <= most_packed;
}

template <class T>
MatrixProducts<T> make_tiles(const GemmPlan& plan) {
  const Tiles<T> tiles(with_columns_running(plan));
  MatrixProducts<T> made;
  made.run = [tiles, swapped = !columns_run(plan)](const T* a, const T* b, T* c, void* scratch, const void* prepared) {
    tiles.run(swapped ? b : a, swapped ? a : b, c, static_cast<T*>(scratch), static_cast<const T*>(prepared));
  };
  made.scratch_bytes = tiles.scratch_bytes();
  made.prepared_bytes = tiles.prepared_bytes();
  if (tiles.prepared())
    made.prepare = [tiles](const T* fixed, void* prepared) { tiles.prepare(fixed, static_cast<T*>(prepared)); };
  return made;
}
template MatrixProducts<float> make_tiles<float>(const GemmPlan&);
template MatrixProducts<double> make_tiles<double>(const GemmPlan&);

}  // namespace xtape
