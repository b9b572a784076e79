/// Attention of one query per head, for decoding token by token.
#pragma once

#include "kernels/attention/attention.hpp"

namespace xtape {

/// Whether make_query_attention supports the plan: one query, contiguous vectors, no dropout.
bool query_attention_suits(const AttentionPlan& plan);

/// The result of a head depends only on its query and on the keys and values up to the last unmasked key. The number of
/// masked keys after the last unmasked key does not change the bits of the result.
Kernel make_query_attention(const AttentionPlan& plan);

}  // namespace xtape
