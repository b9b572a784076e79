/// Attention of one query per head, as in decoding token by token.
#pragma once

#include "attention.hpp"

namespace xtape {

/// Whether make_query_attention can run the plan: one query, contiguous vectors, no dropout.
bool query_attention_suits(const AttentionPlan& plan);

/// The result of a head is a function of its query and of the keys up to the last unmasked one: its bits do not depend
/// on the number of masked keys after that.
Kernel make_query_attention(const AttentionPlan& plan);

}  // namespace xtape
