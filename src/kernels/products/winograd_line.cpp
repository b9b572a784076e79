// Convolutions along one axis with stride 1. A window is divided into parts of three elements and a rest of one or two
// elements, for F(2, 1) and F(2, 2). The products of the parts are added before they are transformed to results. A
// window of 7 then takes 10 multiplications for two results instead of 14.
#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

#include "base/threads/threads.hpp"
#include "kernels/products/winograd.hpp"

namespace xtape::winograd {

namespace {
/// The convolution of x [b, c, l] to y [b, o, n]. It processes strips of neighbouring tiles of two results. Several
/// strips form a block, whose transformed elements stay in the second-level cache. Within a block, channels are
/// contiguous in memory.
class Lines {
 public:
  explicit Lines(const KernelForm& form)
      : threads_(form.threads),
        bits_(form.bits),
        examples_(form.shape(0)[0]),
        channels_(form.shape(0)[1]),
        length_(form.shape(0)[2]),
        results_(form.outputs[0].shape[1]),
        places_(form.outputs[0].shape[2]),
        window_(form.shape(1)[2]),
        ahead_(form.get<std::vector<std::int64_t>>("padding")[0]),
        adjoint_(form.get<bool>("adjoint")),
        in_(whole_lines_of(channels_)),
        out_(whole_lines_of(results_)),
        parts_(window_ / 3),
        rest_(window_ % 3),
        more_(rest_ == 0 ? 0 : rest_ + 1) {
    const std::int64_t tiles = ceiling(places_, 2);
    const std::int64_t floats_each = (4 * parts_ + more_) * in_ + (4 + more_) * out_;
    const std::int64_t most = std::max(least_tiles, block_floats / floats_each);
    strips_ = ceiling(tiles, most);
    strip_ = ceiling(tiles, strips_);
    strips_ = ceiling(tiles, strip_);
    const std::int64_t all = examples_ * strips_;
    each_ = std::min(all, std::max<std::int64_t>(1, most / strip_));
    blocks_ = ceiling(all, each_);
    const std::int64_t block = each_ * strip_, last = (all - (blocks_ - 1) * each_) * strip_;
    of_parts_ = {block, last, [this](std::int64_t count, int fixed) { return product_of(count, 4, parts_, fixed); }};
    if (more_ > 0)
      of_rest_ = {block, last, [this](std::int64_t count, int fixed) { return product_of(count, more_, 1, fixed); }};
  }

  std::size_t weight_bytes() const {
    return of_parts_.prepared_bytes() + of_rest_.prepared_bytes() + (reads_weight() ? transformed_bytes() : 0);
  }
  /// A key of the prepared weight. With equal keys, equal weights give the same prepared data.
  std::string weight_form() const {
    return std::to_string(channels_) + " to " + std::to_string(results_) + " by " + std::to_string(window_) +
           (adjoint_ ? " adjoint " : " ") + (reads_weight() ? "with " : "") + of_parts_.block.prepared_form + ", " +
           of_rest_.block.prepared_form;
  }
  std::size_t scratch_bytes() const {
    return std::max(reads_weight() ? 0 : transformed_bytes(),
                    static_cast<std::size_t>(std::min<std::int64_t>(threads_, blocks_)) * worker_bytes());
  }

  void prepare(const float* weight, std::byte* prepared, std::byte* scratch) const {
    auto* u = reinterpret_cast<float*>(reads_weight() ? transformed_in(prepared) : scratch);
    transform_weight(weight, u, rest_of(u));
    of_parts_.prepare(u, prepared);
    if (more_ > 0) of_rest_.prepare(rest_of(u), prepared + of_parts_.prepared_bytes());
  }

  void run(const float* x, std::byte* prepared, float* y, std::byte* workers) const {
    // Only products without `prepare` read u.
    auto* u = reinterpret_cast<float*>(transformed_in(prepared));
    const float* u_of_rest = rest_of(u);
    std::byte* prepared_rest = prepared + of_parts_.prepared_bytes();
    parallel_pieces(threads_, blocks_, 1, [&](std::int64_t begin, std::int64_t finish, std::int64_t worker) {
      const Memory memory = memory_at(workers + static_cast<std::size_t>(worker) * worker_bytes());
      std::fill_n(memory.line, positions() * in_, 0.0F);  // also clears the padding channels
      for (std::int64_t block = begin; block < finish; ++block) {
        for_strips(block, [&](const Strip& strip, std::int64_t tile) { transform_input(x, strip, tile, memory); });
        const bool whole = block + 1 < blocks_;
        (whole ? of_parts_.block : of_parts_.last).run(memory.v, u, memory.m, memory.scratch, prepared);
        if (more_ > 0)
          (whole ? of_rest_.block : of_rest_.last)
              .run(memory.v + 4 * apart(parts_ * in_), u_of_rest, memory.m + 4 * apart(out_), memory.scratch,
                   prepared_rest);
        for_strips(block, [&](const Strip& strip, std::int64_t tile) { write_results(strip, tile, memory, y); });
      }
    });
  }

 private:
  static constexpr std::int64_t least_tiles = 24;        // tiles per block
  static constexpr std::int64_t block_floats = 1 << 17;  // floats per block, before and after the products

  struct Strip {
    std::int64_t example, first, count;  // `first` and `count` are in tiles
  };
  struct Memory {
    float* line;     ///< [positions, in]: x under a strip.
    float* v;        ///< [4, tiles, parts, in], followed by [more, tiles, in] for the rest: transformed.
    float* m;        ///< [4 + more, tiles, out].
    float* results;  ///< [2 strip, out].
    void* scratch;
  };

  std::int64_t positions() const { return 2 * strip_ + window_ - 1; }
  /// The distance between the elements of tiles. Not a multiple of 4 KiB, because the elements of a tile would then
  /// compete for the same cache set.
  std::int64_t apart(std::int64_t channels) const { return each_ * strip_ * channels + 16; }
  bool reads_weight() const { return of_parts_.reads_weight() || (more_ > 0 && of_rest_.reads_weight()); }
  /// The bytes of the transformed weight: first the parts of the window, then its rest.
  std::size_t transformed_bytes() const { return floats((4 * parts_ + more_) * channels_ * out_); }
  std::byte* transformed_in(std::byte* prepared) const {
    return prepared + of_parts_.prepared_bytes() + of_rest_.prepared_bytes();
  }
  float* rest_of(float* transformed) const { return transformed + 4 * parts_ * channels_ * out_; }
  std::int64_t v_floats() const { return 4 * apart(parts_ * in_) + more_ * apart(in_); }
  std::size_t worker_bytes() const {
    return floats(positions() * in_) + floats(v_floats()) + floats((4 + more_) * apart(out_)) +
           floats(2 * strip_ * out_) + std::max(of_parts_.scratch_bytes(), of_rest_.scratch_bytes());
  }
  Memory memory_at(std::byte* start) const {
    const auto take = [&](std::int64_t count) {
      auto* place = reinterpret_cast<float*>(start);
      start += floats(count);
      return place;
    };
    Memory memory{};
    memory.line = take(positions() * in_);
    memory.v = take(v_floats());
    memory.m = take((4 + more_) * apart(out_));
    memory.results = take(2 * strip_ * out_);
    memory.scratch = start;
    return memory;
  }

  /// The product for each of `count` elements of the tiles: [tiles, parts, in] by [parts, in, out].
  PlannedProduct product_of(std::int64_t tiles, std::int64_t count, std::int64_t parts, int fixed) const {
    Product product;
    product.a = {{count, tiles, parts, channels_}, {apart(parts * in_), parts * in_, in_, 1}, 0};
    product.b = {{count, parts, channels_, results_}, {parts * channels_ * out_, channels_ * out_, out_, 1}, 0};
    product.c = {{count, tiles, results_}, {apart(out_), out_, 1}, 0};
    product.a_axes = "etpc";
    product.b_axes = "epco";
    product.c_axes = "eto";
    product.fixed = fixed;
    product.bits = bits_;
    return make_product(product);
  }

  template <class Visit>
  void for_strips(std::int64_t block, const Visit& visit) const {
    const std::int64_t begin = block * each_, finish = std::min((block + 1) * each_, examples_ * strips_);
    for (std::int64_t i = begin; i < finish; ++i) {
      const std::int64_t first = i % strips_ * strip_;
      visit(Strip{i / strips_, first, std::min(strip_, ceiling(places_, 2) - first)}, (i - begin) * strip_);
    }
  }

  /// Computes u[e, p, c, o] for the parts and u_of_rest[e, c, o] for the rest from the weight [o, c, k]. For the
  /// adjoint, the weight is [c, o, k] and is rotated.
  void transform_weight(const float* weight, float* u, float* u_of_rest) const {
    const std::int64_t of_result = adjoint_ ? window_ : channels_ * window_;
    const std::int64_t of_channel = adjoint_ ? results_ * window_ : window_;
    parallel_for(threads_, channels_, rows_a_piece(results_ * window_), [&](std::int64_t begin, std::int64_t finish) {
      for (std::int64_t c = begin; c < finish; ++c)
        for (std::int64_t o = 0; o < results_; o += width) {
          const std::int64_t count = std::min(width, results_ - o);
          const auto element = [&](std::int64_t i) {
            const float* from = weight + c * of_channel + o * of_result + (adjoint_ ? window_ - 1 - i : i);
            float lanes[width] = {};
            for (std::int64_t k = 0; k < count; ++k) lanes[k] = from[k * of_result];
            return Lanes::load_unaligned(lanes);
          };
          for (std::int64_t p = 0; p < parts_; ++p) {
            const std::array<Lanes, 4> line = weight_line(element(3 * p), element(3 * p + 1), element(3 * p + 2));
            for (std::size_t e = 0; e < 4; ++e)
              line[e].store_unaligned(u + ((static_cast<std::int64_t>(e) * parts_ + p) * channels_ + c) * out_ + o);
          }
          if (more_ == 0) continue;
          const Lanes first = element(3 * parts_), last = element(window_ - 1);
          const std::array<Lanes, 3> rest = {first, rest_ == 1 ? first : first + last, last};
          for (std::int64_t e = 0; e < more_; ++e)
            rest[static_cast<std::size_t>(e)].store_unaligned(u_of_rest + (e * channels_ + c) * out_ + o);
        }
    });
  }

  void transform_input(const float* x, const Strip& strip, std::int64_t tile, const Memory& memory) const {
    const std::int64_t start = 2 * strip.first - ahead_;
    const std::int64_t first = std::clamp<std::int64_t>(start, 0, length_);
    const std::int64_t end = std::clamp<std::int64_t>(start + 2 * strip.count + window_ - 1, first, length_);
    const std::int64_t before = std::min(first - start, positions()), there = end - first;
    std::fill_n(memory.line, before * in_, 0.0F);
    std::fill_n(memory.line + (before + there) * in_, (positions() - before - there) * in_, 0.0F);
    if (there > 0)
      transpose(x + strip.example * channels_ * length_ + first, length_, channels_, there, memory.line + before * in_,
                in_);
    const std::int64_t next = apart(parts_ * in_), next_of_rest = apart(in_);
    for (std::int64_t c = 0; c < channels_; c += width)
      for (std::int64_t t = 0; t < strip.count; ++t) {
        const auto read = [&](std::int64_t i) { return Lanes::load_unaligned(memory.line + (2 * t + i) * in_ + c); };
        float* to = memory.v + (tile + t) * parts_ * in_ + c;
        for (std::int64_t p = 0; p < parts_; ++p, to += in_) {
          const std::array<Lanes, 4> line =
              input_line({read(3 * p), read(3 * p + 1), read(3 * p + 2), read(3 * p + 3)});
          for (std::int64_t e = 0; e < 4; ++e) line[static_cast<std::size_t>(e)].store_unaligned(to + e * next);
        }
        if (more_ == 0) continue;
        to = memory.v + 4 * next + (tile + t) * in_ + c;
        const Lanes a = read(3 * parts_), b = read(3 * parts_ + 1);
        const std::array<Lanes, 3> rest =
            rest_ == 1 ? std::array<Lanes, 3>{a, b, b} : std::array<Lanes, 3>{a - b, b, b - read(3 * parts_ + 2)};
        for (std::int64_t e = 0; e < more_; ++e)
          rest[static_cast<std::size_t>(e)].store_unaligned(to + e * next_of_rest);
      }
  }

  void write_results(const Strip& strip, std::int64_t tile, const Memory& memory, float* y) const {
    const std::int64_t next = apart(out_);
    for (std::int64_t o = 0; o < results_; o += width)
      for (std::int64_t t = 0; t < strip.count; ++t) {
        const float* from = memory.m + (tile + t) * out_ + o;
        const auto read = [&](std::int64_t e) { return Lanes::load_unaligned(from + e * next); };
        std::array<Lanes, 2> both = result_line({read(0), read(1), read(2), read(3)});
        if (rest_ == 1) both = {both[0] + read(4), both[1] + read(5)};
        if (rest_ == 2) both = {both[0] + (read(4) + read(5)), both[1] + (read(5) - read(6))};
        float* to = memory.results + 2 * t * out_ + o;
        both[0].store_unaligned(to);
        both[1].store_unaligned(to + out_);
      }
    transpose(memory.results, out_, std::min(2 * strip.count, places_ - 2 * strip.first), results_,
              y + strip.example * results_ * places_ + 2 * strip.first, places_);
  }

  int threads_;
  Bits bits_;
  std::int64_t examples_, channels_, length_;  // of x
  std::int64_t results_, places_;              // of y
  std::int64_t window_, ahead_;                // elements of a window; zeros before x
  bool adjoint_;
  std::int64_t in_, out_;                // the channels, rounded up to complete lines
  std::int64_t parts_, rest_, more_;     // per window: parts, elements of the rest, and products for the rest
  std::int64_t strip_ = 0, strips_ = 0;  // tiles per strip; strips per example
  std::int64_t each_ = 0, blocks_ = 0;   // strips per block; blocks
  BlockProducts of_parts_, of_rest_;
};
}  // namespace

[[gnu::cold]] Kernel make_line(const KernelForm& form) {
  return kernel_of(Lines(form), form);
}

}  // namespace xtape::winograd
