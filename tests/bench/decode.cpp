// Generation of one token at a time, compared with the time to read all weights once, which is a lower bound for a step
// of one row.
#include "decode.hpp"

#include <algorithm>
#include <random>

#include "base/threads/threads.hpp"
#include "bench.hpp"
#include "kernels/math/lanes.hpp"
#include "xtape/decode.hpp"

namespace bench {

using namespace xtape;

namespace {
/// The sum of a range of floats, in eight registers, so that additions do not depend on each other.
float streamed(const float* values, std::int64_t count) {
  using Batch = xsimd::batch<float>;
  constexpr std::int64_t width = Batch::size, registers = 8;
  Batch sums[registers];
  for (Batch& sum : sums) sum = Batch(0.0f);
  constexpr std::int64_t ahead = 2048;  // prefetch distance in floats
  for (std::int64_t i = 0; i + registers * width <= count; i += registers * width)
    for (std::int64_t k = 0; k < registers; ++k) {
      __builtin_prefetch(values + i + k * width + ahead, 0, 2);
      sums[k] += Batch::load_unaligned(values + i + k * width);
    }
  float total = 0;
  for (const Batch& sum : sums) total += xtape::add_lanes(sum);
  return total;
}
}  // namespace

double read_seconds(const Store& weights, int threads, int rounds) {
  double best = 0;
  volatile float kept = 0;  // so that the compiler does not remove the reads
  for (int round = 0; round < rounds; ++round) {
    const double start = seconds();
    for (const Store::Entry& entry : weights)
      parallel_for(threads, static_cast<std::int64_t>(entry.value.bytes() / sizeof(float)), 1 << 16,
                   [&](std::int64_t begin, std::int64_t finish) {
                     kept = streamed(static_cast<const float*>(entry.value.data()) + begin, finish - begin);
                   });
    const double time = seconds() - start;
    if (round == 0 || time < best) best = time;
  }
  return best;
}

DecodeTimes time_decoding(Model& model, std::int64_t vocabulary, std::int64_t context, std::int64_t tokens,
                          int threads) {
  constexpr std::int64_t prompt_tokens = 16;
  std::mt19937_64 generator(0);
  Tokens prompt;
  for (std::int64_t i = 0; i < prompt_tokens; ++i)
    prompt.push_back(static_cast<std::int32_t>(generator() % static_cast<std::uint64_t>(vocabulary)));
  PredictorOptions options;
  options.limit = context;
  options.player.emplace();
  options.player->threads = threads;
  Predictor predictor(model, "logits", options);
  GenerateOptions generating;
  generating.context = context;
  generating.tokens = std::min(tokens, context - prompt_tokens - 1);
  generating.sampling.temperature = 0;
  std::vector<double> times;
  DecodeTimes result;
  double last = seconds();
  generating.each = [&](std::int32_t) {
    const double now = seconds();
    times.push_back(now - last);
    last = now;
    return false;
  };
  generate(predictor, prompt, generating);
  result.first_token = times.front();
  std::sort(times.begin(), times.end());
  result.token = times[times.size() / 2];
  result.read = read_seconds(model.weights(), threads, 9);
  return result;
}

}  // namespace bench
