/// Times of generation.
#pragma once

#include <cstdint>

#include "xtape/model.hpp"

namespace bench {

struct DecodeTimes {
  double token = 0;        ///< Seconds per generated token, the median.
  double first_token = 0;  ///< Seconds until the first token: planning, and reading the prompt.
  double read = 0;         ///< Seconds to read all weights once.
};

/// Reads a prompt of 16 random tokens and greedily generates up to `tokens` more, in a context of `context` tokens.
DecodeTimes time_decoding(xtape::Model& model, std::int64_t vocabulary, std::int64_t context, std::int64_t tokens,
                          int threads);

/// The minimum time, in seconds, of `rounds` rounds in which `threads` threads read all (float32) weights once.
double read_seconds(const xtape::Store& weights, int threads, int rounds);

}  // namespace bench
