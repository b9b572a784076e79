/// Rounds finite float32 numbers to blocks. `from` has as many numbers as a block.
#pragma once

#include "base/blocks/block_formats.hpp"

namespace xtape::block {

void round_to(Q4_0& block, const float* from);
void round_to(Q4_1& block, const float* from);
void round_to(Q5_0& block, const float* from);
void round_to(Q5_1& block, const float* from);
void round_to(Q8_0& block, const float* from);
void round_to(Q4_K& block, const float* from);
void round_to(Q5_K& block, const float* from);
void round_to(Q6_K& block, const float* from);

inline void round_to(float& number, const float* from) {
  number = *from;
}
inline void round_to(float16& number, const float* from) {
  number = float16(*from);
}
inline void round_to(bfloat16& number, const float* from) {
  number = bfloat16(*from);
}

}  // namespace xtape::block
