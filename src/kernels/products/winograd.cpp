// Convolutions with windows of 3 x 3 elements and stride 1. A tile of 2 x 2 results takes 16 multiplications per pair
// of channels instead of 36.
#include "kernels/products/winograd.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

#include "base/threads/threads.hpp"

namespace xtape::winograd {

namespace {
constexpr std::int64_t elements = 16;  // elements of a transformed tile; each element needs its own matrix product

/// The convolution of x [b, c, h, w] to y [b, o, h', w']. It processes strips of neighbouring tiles in a row of tiles.
/// Several strips form a block, whose transformed elements stay in the second-level cache. Within a block, channels are
/// contiguous in memory.
class Squares {
 public:
  explicit Squares(const KernelForm& form)
      : threads_(form.threads),
        bits_(form.bits),
        examples_(form.shape(0)[0]),
        channels_(form.shape(0)[1]),
        height_(form.shape(0)[2]),
        width_(form.shape(0)[3]),
        results_(form.outputs[0].shape[1]),
        rows_(form.outputs[0].shape[2]),
        columns_(form.outputs[0].shape[3]),
        adjoint_(form.get<bool>("adjoint")),
        in_(whole_lines_of(channels_)),
        out_(whole_lines_of(results_)),
        tile_rows_(ceiling(rows_, 2)),
        tile_columns_(ceiling(columns_, 2)) {
    const auto& padding = form.get<std::vector<std::int64_t>>("padding");
    above_ = padding[0];
    left_ = padding[1];
    const std::int64_t parts = ceiling(tile_columns_, longest);
    strip_ = ceiling(tile_columns_, parts);
    strips_ = ceiling(tile_columns_, strip_);
    const std::int64_t all = examples_ * strips_ * tile_rows_;
    const std::int64_t most = std::max(least_tiles, block_floats / (elements * (in_ + out_)));
    each_ = std::min(all, std::max<std::int64_t>(1, most / strip_));
    blocks_ = ceiling(all, each_);
    products_ = {each_ * strip_, (all - (blocks_ - 1) * each_) * strip_,
                 [this](std::int64_t tiles, int fixed) { return product_of(tiles, fixed); }};
  }

  std::size_t weight_bytes() const {
    return products_.prepared_bytes() + (products_.reads_weight() ? floats(weight_floats()) : 0);
  }
  /// A key of the prepared weight. With equal keys, equal weights give the same prepared data.
  std::string weight_form() const {
    return std::to_string(channels_) + " to " + std::to_string(results_) + (adjoint_ ? " adjoint " : " ") +
           (products_.reads_weight() ? "with " : "") + products_.block.prepared_form;
  }
  std::size_t scratch_bytes() const {
    return std::max(products_.reads_weight() ? 0 : floats(weight_floats()),
                    static_cast<std::size_t>(std::min<std::int64_t>(threads_, blocks_)) * worker_bytes());
  }

  void prepare(const float* weight, std::byte* prepared, std::byte* scratch) const {
    auto* u = reinterpret_cast<float*>(products_.reads_weight() ? prepared + products_.prepared_bytes() : scratch);
    transform_weight(weight, u);
    products_.prepare(u, prepared);
  }

  void run(const float* x, std::byte* prepared, float* y, std::byte* workers) const {
    // Only products without `prepare` read u.
    const auto* u = reinterpret_cast<const float*>(prepared + products_.prepared_bytes());
    parallel_pieces(threads_, blocks_, 1, [&](std::int64_t begin, std::int64_t finish, std::int64_t worker) {
      const Memory memory = memory_at(workers + static_cast<std::size_t>(worker) * worker_bytes());
      std::fill_n(memory.lines, lines_floats(), 0.0F);  // columns outside x stay zero
      for (std::int64_t block = begin; block < finish; ++block) {
        for_strips(block, [&](const Strip& strip, std::int64_t tile) { transform_input(x, strip, tile, memory); });
        (block + 1 < blocks_ ? products_.block : products_.last).run(memory.v, u, memory.m, memory.scratch, prepared);
        for_strips(block, [&](const Strip& strip, std::int64_t tile) { write_results(strip, tile, memory, y); });
      }
    });
  }

 private:
  static constexpr std::int64_t longest = 32;            // the longest strip, in tiles
  static constexpr std::int64_t least_tiles = 24;        // tiles per block
  static constexpr std::int64_t block_floats = 1 << 16;  // floats per block, before and after the products

  struct Strip {
    std::int64_t example, row, first, count;  // `row`, `first` and `count` are in tiles
    bool below;                               // the previous strip in the block is directly above
  };
  struct Memory {
    float* lines;    ///< [4, positions, in]: the lines of x under a strip. Line i is lines[i % 4].
    float *v, *m;    ///< [16, tiles, in] and [16, tiles, out], transformed.
    float* results;  ///< [2, 2 strip, out].
    void* scratch;
  };

  std::int64_t positions() const { return 2 * strip_ + 2; }
  std::int64_t lines_floats() const { return 4 * positions() * in_; }
  /// The distance between the elements of tiles. Not a multiple of 4 KiB, because the 16 elements of a tile would then
  /// compete for the same cache set.
  std::int64_t apart(std::int64_t channels) const { return each_ * strip_ * channels + 16; }
  std::int64_t weight_floats() const { return elements * channels_ * out_; }
  std::size_t worker_bytes() const {
    return floats(lines_floats()) + floats(elements * apart(in_)) + floats(elements * apart(out_)) +
           floats(4 * strip_ * out_) + products_.scratch_bytes();
  }
  Memory memory_at(std::byte* start) const {
    const auto take = [&](std::int64_t count) {
      auto* place = reinterpret_cast<float*>(start);
      start += floats(count);
      return place;
    };
    Memory memory{};
    memory.lines = take(lines_floats());
    memory.v = take(elements * apart(in_));
    memory.m = take(elements * apart(out_));
    memory.results = take(4 * strip_ * out_);
    memory.scratch = start;
    return memory;
  }

  /// The product for each element of the tiles: [tiles, in] by [in, out].
  PlannedProduct product_of(std::int64_t tiles, int fixed) const {
    Product product;
    product.a = {{elements, tiles, channels_}, {apart(in_), in_, 1}, 0};
    product.b = {{elements, channels_, results_}, {channels_ * out_, out_, 1}, 0};
    product.c = {{elements, tiles, results_}, {apart(out_), out_, 1}, 0};
    product.a_axes = "etc";
    product.b_axes = "eco";
    product.c_axes = "eto";
    product.fixed = fixed;
    product.bits = bits_;
    return make_product(product);
  }

  template <class Visit>
  void for_strips(std::int64_t block, const Visit& visit) const {
    const std::int64_t begin = block * each_, finish = std::min((block + 1) * each_, examples_ * strips_ * tile_rows_);
    for (std::int64_t i = begin; i < finish; ++i) {
      const std::int64_t row = i % tile_rows_, first = i / tile_rows_ % strips_ * strip_;
      visit(Strip{i / tile_rows_ / strips_, row, first, std::min(strip_, tile_columns_ - first), i > begin && row > 0},
            (i - begin) * strip_);
    }
  }

  /// Computes u[e, c, o] from the weight [o, c, 3, 3]. For the adjoint, the weight is [c, o, 3, 3] and is rotated.
  void transform_weight(const float* weight, float* u) const {
    const std::int64_t of_result = adjoint_ ? 9 : channels_ * 9, of_channel = adjoint_ ? results_ * 9 : 9;
    parallel_for(threads_, channels_, rows_a_piece(results_ * 16), [&](std::int64_t begin, std::int64_t finish) {
      for (std::int64_t c = begin; c < finish; ++c)
        for (std::int64_t o = 0; o < results_; o += width) {
          float window[9][width] = {};
          for (std::int64_t k = 0; k < std::min(width, results_ - o); ++k) {
            const float* from = weight + c * of_channel + (o + k) * of_result;
            for (std::int64_t i = 0; i < 9; ++i) window[adjoint_ ? 8 - i : i][k] = from[i];
          }
          std::array<std::array<Lanes, 4>, 3> lines;
          for (std::size_t j = 0; j < 3; ++j)
            lines[j] = weight_line(Lanes::load_unaligned(window[j]), Lanes::load_unaligned(window[3 + j]),
                                   Lanes::load_unaligned(window[6 + j]));
          for (std::size_t i = 0; i < 4; ++i) {
            const std::array<Lanes, 4> row = weight_line(lines[0][i], lines[1][i], lines[2][i]);
            for (std::size_t j = 0; j < 4; ++j)
              row[j].store_unaligned(u + (static_cast<std::int64_t>(4 * i + j) * channels_ + c) * out_ + o);
          }
        }
    });
  }

  /// Reads line `line` of x, counted from `above_` lines above x, for the tiles of a strip.
  void read_line(const float* x, const Strip& strip, std::int64_t line, float* to) const {
    const std::int64_t row = line - above_, start = 2 * strip.first - left_;
    const std::int64_t first = std::clamp<std::int64_t>(start, 0, width_);
    const std::int64_t end = std::clamp<std::int64_t>(start + 2 * strip.count + 2, first, width_);
    if (row < 0 || row >= height_ || first == end) {
      std::fill_n(to, positions() * in_, 0.0F);
      return;
    }
    std::fill_n(to, (first - start) * in_, 0.0F);
    std::fill_n(to + (end - start) * in_, (positions() - (end - start)) * in_, 0.0F);
    transpose(x + (strip.example * channels_ * height_ + row) * width_ + first, height_ * width_, channels_,
              end - first, to + (first - start) * in_, in_);
  }

  void transform_input(const float* x, const Strip& strip, std::int64_t tile, const Memory& memory) const {
    const std::int64_t top = 2 * strip.row;
    const auto line = [&](std::int64_t i) { return memory.lines + (top + i) % 4 * positions() * in_; };
    for (std::int64_t i = strip.below ? 2 : 0; i < 4; ++i) read_line(x, strip, top + i, line(i));
    const std::array<const float*, 4> lines{line(0), line(1), line(2), line(3)};
    const std::int64_t next = apart(in_);
    for (std::int64_t c = 0; c < channels_; c += width) {
      const auto column = [&](std::int64_t j) {
        std::array<Lanes, 4> read;
        for (std::size_t i = 0; i < 4; ++i) read[i] = Lanes::load_unaligned(lines[i] + j * in_ + c);
        return input_line(read);
      };
      std::array<Lanes, 4> a = column(0), b = column(1);
      for (std::int64_t t = 0; t < strip.count; ++t) {
        const std::array<Lanes, 4> third = column(2 * t + 2), fourth = column(2 * t + 3);
        float* to = memory.v + (tile + t) * in_ + c;
        for (std::size_t i = 0; i < 4; ++i) {
          const std::array<Lanes, 4> row = input_line({a[i], b[i], third[i], fourth[i]});
          for (const Lanes& element : row) {
            element.store_unaligned(to);
            to += next;
          }
        }
        a = third;
        b = fourth;
      }
    }
  }

  /// Writes two lines of results, A' m A of each tile.
  void write_results(const Strip& strip, std::int64_t tile, const Memory& memory, float* y) const {
    const std::int64_t next = apart(out_), line = 2 * strip_ * out_;
    for (std::int64_t o = 0; o < results_; o += width)
      for (std::int64_t t = 0; t < strip.count; ++t) {
        const float* from = memory.m + (tile + t) * out_ + o;
        std::array<std::array<Lanes, 4>, 2> lines;
        std::array<Lanes, 4> m[4];  // m[j]: a column
        for (std::size_t i = 0; i < 4; ++i)
          for (std::size_t j = 0; j < 4; ++j) {
            m[j][i] = Lanes::load_unaligned(from);
            from += next;
          }
        for (std::size_t j = 0; j < 4; ++j) {
          const std::array<Lanes, 2> column = result_line(m[j]);
          lines[0][j] = column[0];
          lines[1][j] = column[1];
        }
        float* to = memory.results + 2 * t * out_ + o;
        for (std::size_t i = 0; i < 2; ++i, to += line) {
          const std::array<Lanes, 2> results = result_line(lines[i]);
          results[0].store_unaligned(to);
          results[1].store_unaligned(to + out_);
        }
      }
    const std::int64_t count = std::min(2 * strip.count, columns_ - 2 * strip.first);
    for (std::int64_t i = 0; i < std::min<std::int64_t>(2, rows_ - 2 * strip.row); ++i)
      transpose(memory.results + i * line, out_, count, results_,
                y + (strip.example * results_ * rows_ + 2 * strip.row + i) * columns_ + 2 * strip.first,
                rows_ * columns_);
  }

  int threads_;
  Bits bits_;
  std::int64_t examples_, channels_, height_, width_;  // of x
  std::int64_t results_, rows_, columns_;              // of y
  bool adjoint_;
  std::int64_t in_, out_;  // the channels, rounded up to complete lines
  std::int64_t tile_rows_, tile_columns_;
  std::int64_t above_ = 0, left_ = 0;    // zeros around x
  std::int64_t strip_ = 0, strips_ = 0;  // tiles per strip; strips side by side
  std::int64_t each_ = 0, blocks_ = 0;   // strips per block; blocks
  BlockProducts products_;
};

}  // namespace

[[gnu::cold]] Kernel make_square(const KernelForm& form) {
  return kernel_of(Squares(form), form);
}

}  // namespace xtape::winograd

namespace xtape {

namespace {
Kernel make_winograd_conv(const KernelForm& form) {
  return form.shape(0).size() == 3 ? winograd::make_line(form) : winograd::make_square(form);
}
}  // namespace

KernelList list_winograd() {
  return {{"winograd_conv", make_winograd_conv}};
}

}  // namespace xtape
