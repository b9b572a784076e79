/// Times of generating.
#pragma once

#include <cstdint>

#include "xtape/model.hpp"

namespace bench {

struct DecodeTimes {
  double token = 0;        ///< Seconds a generated token, the median.
  double first_token = 0;  ///< Until the first one: planning, and reading the prompt.
  double read = 0;         ///< Reading all weights once.
};

/// Reads a prompt of 16 random tokens and generates up to `tokens` more, greedily, in a context of `context`.
DecodeTimes time_decoding(xtape::Model& model, std::int64_t vocabulary, std::int64_t context, std::int64_t tokens,
                          int threads);

/// The least time of `rounds` in which `threads` threads read all (float32) weights once.
double read_seconds(const xtape::Store& weights, int threads, int rounds);

}  // namespace bench
