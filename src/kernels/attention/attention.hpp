/// Fused attention by blocks of queries. The array of all scores (queries x keys, for every head) is never in memory.
/// The method follows Dao, Fu, Ermon, Rudra and Ré (2022, FlashAttention), but divides only the queries into blocks,
/// not the keys. A processor's cache holds the scores of a block of queries for all keys. Trailing keys that are masked
/// for all queries of a block are skipped.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "kernels/table/kernel_form.hpp"
#include "kernels/elements/loops.hpp"

namespace xtape {

struct AttentionPlan {
  Dtype dtype = Dtype::float32;  ///< The dtype of the results, and of the operands except those in `narrow`.
  /// The dtypes of q, k, v and dy if they are stored as bfloat16, float16 or int8 in a float32 attention.
  std::array<std::optional<Dtype>, 4> narrow = {};
  std::int64_t queries = 1, keys = 1;
  std::int64_t width = 1, value_width = 1;  ///< The number of elements of a query or key, and of a value or output.

  /// The strides of a head's matrix: between queries or keys, and between elements.
  struct Matrix {
    std::int64_t row = 0, column = 0;
  };
  Matrix q, k, v, y;
  Matrix mask;        ///< [queries, keys]. Strides of broadcast axes are 0.
  Matrix dq, dk, dv;  ///< Only for the gradient.
  /// The stride between queries in the dense array of all scores. The random number for dropout of a score depends on
  /// the flat index of the score in this array.
  std::int64_t places_row = 0;
  /// The heads of all batch entries, with the strides of q, k, v, y (or dy), mask, the array of scores, dq, dk, dv.
  Loops<9> heads;

  Precision precision = Precision::float32;  ///< The precision of the products.
  double scale = 1;                          ///< The factor of the scores.
  bool masked = false;                       ///< Whether there is a mask, the last input.
  double rate = 0;                           ///< The dropout rate of the weights; 0: no dropout.
  std::uint64_t key = 0;                     ///< The key of the dropout's random stream.
  int threads = 1;
};

/// The plan of a call of attention, or of its gradient.
AttentionPlan plan_of_attention(const KernelForm& form, bool gradient);

/// Returns the elements of the mask, which is input number `place`. If there is no mask, returns the address of a
/// single false.
inline const bool* mask_of(const KernelArguments& arguments, std::size_t place, bool masked) {
  static constexpr bool seen = false;
  return masked ? in<bool>(arguments, place) : &seen;
}

}  // namespace xtape
