#include <algorithm>
#include <cstring>
#include <limits>

#include "base/threads/threads.hpp"
#include "kernels/attention/attention.hpp"
#include "kernels/elements/scalar.hpp"
#include "kernels/math/block_lanes.hpp"
#include "kernels/math/lanes.hpp"
#include "kernels/math/vector_math.hpp"
#include "kernels/table/scratch.hpp"

namespace xtape {

namespace {
constexpr std::int64_t worth_a_piece = 1 << 15;  // multiply-adds
constexpr std::int64_t heads_ahead = 4;          // the prefetch distance in heads
constexpr std::int64_t bytes_ahead = 1 << 14;    // the most bytes to prefetch per head

/// The computation in T. K is the type of keys and values: T, or blocks of Q8_0.
template <class T, class K>
class QueryAttention {
 public:
  [[gnu::cold]] explicit QueryAttention(const AttentionPlan& plan)
      : plan_(plan), grain_(std::max<std::int64_t>(1, worth_a_piece / (plan.keys * (plan.width + plan.value_width)))) {}

  std::size_t scratch_bytes() const { return static_cast<std::size_t>(plan_.threads) * bytes_of_thread(); }

  void run(const void* q, const K* k, const K* v, const bool* mask, T* y, std::byte* scratch) const {
    const auto run_heads = [&](std::int64_t begin, std::int64_t end, std::int64_t worker) {
      T* weights = reinterpret_cast<T*>(scratch + static_cast<std::size_t>(worker) * bytes_of_thread());
      T* widened = weights + lanes_of_keys();
      for (std::int64_t head = begin; head < end; ++head) {
        const auto at = plan_.heads.offsets(head, plan_.heads.rank());
        const bool* masked = mask + at[of_mask];
        const std::int64_t keys = last_seen(masked, plan_.mask.column, plan_.keys);
        prefetch(head + heads_ahead, keys, k, v);
        score(query(q, at[of_q], widened), at_element(k, at[of_k]), keys, weights);
        const T total = weigh(masked, keys, weights);
        add_values(weights, at_element(v, at[of_v]), keys, total == 0 ? T{0} : 1 / total, y + at[of_y]);
      }
    };
    parallel_pieces(plan_.threads, plan_.heads.count(), grain_, run_heads);
  }

 private:
  enum Which : std::size_t { of_q, of_k, of_v, of_y, of_mask };  // indices into AttentionPlan::heads
  using Batch = xsimd::batch<T>;
  static constexpr std::int64_t width = Batch::size;
  static constexpr std::int64_t line = 64 / sizeof(T);  // elements of a Line, and of a cache line
  using Row = typename Register<T, Batch::size>::type;
  static constexpr bool has_blocks = is_block_struct<K>;

  std::int64_t lanes_of_keys() const { return ceiling(plan_.keys, line) * line; }
  std::size_t bytes_of_thread() const {
    return whole_lines(static_cast<std::size_t>(lanes_of_keys() + plan_.width) * sizeof(T));
  }

  /// Returns the query at `offset`. If the query is stored as bfloat16, float16 or int8, its elements are converted to
  /// T in `memory`.
  const T* query(const void* q, std::int64_t offset, T* memory) const {
    if (!plan_.narrow[of_q]) return static_cast<const T*>(q) + offset;
    return with_narrow(*plan_.narrow[of_q], [&](auto number) {
      const auto* narrow = static_cast<const decltype(number)*>(q) + offset;
      for (std::int64_t i = 0; i < plan_.width; ++i) memory[i] = static_cast<T>(narrow[i]);
      return memory;
    });
  }

  /// Prefetches the first keys and values of a later head. The memory of other heads lies in between, so the processor
  /// does not prefetch these keys and values by itself.
  void prefetch(std::int64_t head, std::int64_t keys, const K* k, const K* v) const {
    if (head >= plan_.heads.count()) return;
    const auto at = plan_.heads.offsets(head, plan_.heads.rank());
    constexpr std::int64_t line_elements = 64 / sizeof(K) * elements_of<K>;  // about those of a cache line
    const std::int64_t bytes =
        (plan_.width + plan_.value_width) * static_cast<std::int64_t>(sizeof(K)) / elements_of<K>;
    const std::int64_t most = bytes_ahead / bytes;
    for (std::int64_t j = 0; j < std::min(keys, most); ++j) {
      for (std::int64_t i = 0; i < plan_.width; i += line_elements)
        __builtin_prefetch(at_element(k, at[of_k] + j * plan_.k.row + i), 0, 3);
      for (std::int64_t i = 0; i < plan_.value_width; i += line_elements)
        __builtin_prefetch(at_element(v, at[of_v] + j * plan_.v.row + i), 0, 3);
    }
  }

  /// Computes the dot products of the query with the keys. Each step computes as many dot products as a register has
  /// lanes.
  void score(const T* q, const K* k, std::int64_t keys, T* scores) const {
    for (std::int64_t first = 0; first < keys; first += width) {
      Row sums[Batch::size] = {};
      for (std::int64_t j = 0; j < std::min(width, keys - first); ++j) {
        Line<T> sum;
        sum.fill(Batch(T{0}));
        const K* key = at_element(k, (first + j) * plan_.k.row);
        if constexpr (has_blocks)
          for (std::int64_t i = 0; i < plan_.width; i += elements_of<K>, ++key)
            BlockReader<K>(*key).template group<0>(0, [&](auto at, const auto& numbers) {
              auto& part = sum[at() % std::tuple_size_v<Line<T>>];
              part = fused<T>(Batch::load_unaligned(q + i + at() * width), numbers, part);
            });
        else
          for_lines<T>(plan_.width, [&](std::int64_t i, auto piece, const auto& lanes) {
            sum[piece] = fused(lanes.load(q + i), lanes.load(key + i), sum[piece]);
          });
        joined<T>(sum).store_unaligned(reinterpret_cast<T*>(&sums[j]));
      }
      add_rows<T, Batch::size>(sums);
      std::memcpy(scores + first, &sums[0], sizeof(Row));
    }
  }

  /// Converts scores to exponentials, and returns their sum.
  T weigh(const bool* masked, std::int64_t keys, T* weights) const {
    constexpr T lowest = -std::numeric_limits<T>::infinity();
    const std::int64_t end = ceiling(keys, line) * line;
    const T scale = static_cast<T>(plan_.scale);
    for (std::int64_t j = 0; j < keys; ++j) weights[j] = masked[j * plan_.mask.column] ? lowest : weights[j] * scale;
    std::fill(weights + keys, weights + end, lowest);
    const T largest = max_of_lanes(weights, end);
    const Batch shift(largest == lowest ? T{0} : largest);
    Line<T> total;
    total.fill(Batch(T{0}));
    for_lines<T>(end, [&](std::int64_t j, auto piece, const auto& lanes) {
      const Batch weight = vector_math::clipped_exp(lanes.load(weights + j) - shift);
      lanes.store(weights + j, weight);
      total[piece] += weight;
    });
    return add_line<T>(total);
  }

  void add_values(const T* weights, const K* v, std::int64_t keys, T factor, T* y) const {
    if constexpr (has_blocks)
      add_blocks(weights, v, keys, factor, y);
    else
      add_rows_of(weights, v, keys, factor, y);
  }
  void add_blocks(const T* weights, const K* v, std::int64_t keys, T factor, T* y) const {
    for (std::int64_t i = 0; i < plan_.value_width; i += elements_of<K>) {
      Batch sums[2][Group::registers];  // of even and odd keys
      for (auto& each : sums) std::fill(std::begin(each), std::end(each), Batch(T{0}));
      const auto add = [&](std::int64_t j, Batch(&sum)[Group::registers]) {
        BlockReader<K>(*at_element(v, i + j * plan_.v.row)).template group<0>(0, [&](auto at, const auto& numbers) {
          sum[at()] = fused<T>(Batch(weights[j]), numbers, sum[at()]);
        });
      };
      std::int64_t j = 0;
      for (; j + 2 <= keys; j += 2) {
        add(j, sums[0]);
        add(j + 1, sums[1]);
      }
      if (j < keys) add(j, sums[0]);
      for (int r = 0; r < Group::registers; ++r)
        ((sums[0][r] + sums[1][r]) * Batch(factor)).store_unaligned(y + i + r * width);
    }
  }
  void add_rows_of(const T* weights, const K* v, std::int64_t keys, T factor, T* y) const {
    for_lanes<T>(plan_.value_width, [&](std::int64_t i, const auto& lanes) {
      Batch even(T{0}), odd(T{0});
      const T* value = v + i;
      std::int64_t j = 0;
      for (; j + 2 <= keys; j += 2, value += 2 * plan_.v.row) {
        even = fused(Batch(weights[j]), lanes.load(value), even);
        odd = fused(Batch(weights[j + 1]), lanes.load(value + plan_.v.row), odd);
      }
      if (j < keys) even = fused(Batch(weights[j]), lanes.load(value), even);
      lanes.store(y + i, (even + odd) * Batch(factor));
    });
  }

  AttentionPlan plan_;
  std::int64_t grain_;
};

template <class T, class K = T>
Kernel made(const AttentionPlan& plan) {
  const QueryAttention<T, K> attention(plan);
  return {[attention, masked = plan.masked](const KernelArguments& arguments) {
            attention.run(arguments.in[0], in<K>(arguments, 1), in<K>(arguments, 2), mask_of(arguments, 3, masked),
                          out<T>(arguments, 0), static_cast<std::byte*>(arguments.scratch));
          },
          attention.scratch_bytes()};
}

/// Whether keys and values are floats, or whole blocks of Q8_0.
bool reads_keys(const AttentionPlan& plan) {
  if (!plan.narrow[1] && !plan.narrow[2]) return true;
  if (plan.narrow[1] != Dtype::q8_0 || plan.narrow[2] != Dtype::q8_0) return false;
  const auto whole = [](std::int64_t elements) { return elements % block_numbers<block::Q8_0> == 0; };
  return whole(plan.width) && whole(plan.value_width) && whole(plan.k.row) && whole(plan.v.row) &&
         std::ranges::all_of(plan.heads.strides[1], whole) && std::ranges::all_of(plan.heads.strides[2], whole);
}
}  // namespace

bool query_attention_suits(const AttentionPlan& plan) {
  const auto runs = [](const AttentionPlan::Matrix& matrix) { return matrix.column == 1; };
  return reads_keys(plan) && !is_block(plan.narrow[0].value_or(plan.dtype)) && plan.queries == 1 && plan.keys > 0 &&
         plan.width > 0 && plan.rate == 0 && runs(plan.q) && runs(plan.k) && runs(plan.v) && runs(plan.y);
}

Kernel make_query_attention(const AttentionPlan& plan) {
  if (plan.narrow[1]) return made<float, block::Q8_0>(plan);
  return plan.dtype == Dtype::float64 ? made<double>(plan) : made<float>(plan);
}

}  // namespace xtape
