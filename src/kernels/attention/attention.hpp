/// Fused attention by blocks of queries. The array of all scores (queries x keys, for every head) is never in memory.
/// The method follows Dao, Fu, Ermon, Rudra and Ré (2022, FlashAttention), but divides only the queries into blocks,
/// not the keys. A processor's cache holds the scores of a block of queries for all keys. Trailing keys that are masked
/// for all queries of a block are skipped.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "kernels/elements/loops.hpp"
#include "kernels/table/kernel_form.hpp"
#include "xtape/attributes.hpp"

namespace xtape {

// The axes of attention.

/// The axis labels of the two equations, and their roles in attention.
struct AttentionLabels {
  std::string q, k, v, scores, y;
  std::string heads;  ///< The labels of the batch and head axes, which q, k, v, scores and y all have.
  char query = 0, key = 0, width = 0, value_width = 0;
};

/// Returns the labels of the equations "scores" and "outputs". The equation "scores" must compute an array with an axis
/// of queries and, as the last axis, the keys. The equation "outputs" must sum over the keys. The labels of "outputs"
/// are renamed to those of "scores". Throws Error if the equations do not describe an attention.
AttentionLabels labels_of_attention(const Attributes& attributes);

// The keys that a row of a mask leaves visible to its query.

/// Returns one more than the index of the last unmasked key among the `keys` keys of a row, but at least `seen`.
/// `column` is the stride between keys.
inline std::int64_t last_seen(const bool* row, std::int64_t column, std::int64_t keys, std::int64_t seen = 0) {
  if (column == 0) return row[0] ? seen : keys;
  if (column == 1)
    for (std::uint64_t eight = 0; keys - seen >= 8; keys -= 8) {
      constexpr std::uint64_t all_masked = 0x0101010101010101u;
      std::memcpy(&eight, row + keys - 8, 8);
      if (eight != all_masked) break;
    }
  while (keys > seen && row[(keys - 1) * column]) --keys;
  return keys;
}

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
  Bits bits = Bits::usual;
  double scale = 1;       ///< The factor of the scores.
  bool masked = false;    ///< Whether there is a mask, the last input.
  double rate = 0;        ///< The dropout rate of the weights; 0: no dropout.
  std::uint64_t key = 0;  ///< The key of the dropout's random stream.
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

// Attention of one query per head, for decoding token by token.

/// Whether make_query_attention supports the plan: one query, contiguous vectors, no dropout.
bool query_attention_suits(const AttentionPlan& plan);

/// The result of a head depends only on its query and on the keys and values up to the last unmasked key. The number of
/// masked keys after the last unmasked key does not change the bits of the result.
Kernel make_query_attention(const AttentionPlan& plan);

}  // namespace xtape
