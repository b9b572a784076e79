#include "train/trainer/weight_average.hpp"

#include <algorithm>
#include <cmath>

#include "base/system/durable.hpp"
#include "base/threads/threads.hpp"
#include "kernels/table/kernels.hpp"
#include "xtape/safetensors.hpp"

namespace xtape::train {

WeightAverage::WeightAverage(const Store& weights, double decay, int threads, ranks::RankGroup& group)
    : weights_(weights),
      decay_(decay),
      threads_(thread_count(threads)),
      pieces_(pieces_of(weights, {})),
      group_(group),
      keeps_(group.host(group.rank()) == group.rank()) {
  if (!(decay >= 0 && decay < 1))
    throw Error("ema: the decay must be at least 0 and below 1, got " + std::to_string(decay));
}

void WeightAverage::update() {
  if (!keeps_) return;
  if (averages_.empty()) {
    for (const Store::Entry& weight : weights_) averages_.add(weight.name, weight.value.clone());
    return;
  }
  parallel_for(threads_, std::ssize(pieces_), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const Piece& piece = pieces_[static_cast<std::size_t>(i)];
      if (weights_[piece.weight].value.dtype() == Dtype::float64)
        move<double>(piece);
      else
        move<float>(piece);
    }
  });
}

/// Makes a step of the share 1 - decay from the averages towards the weights.
template <class T>
void WeightAverage::move(const Piece& piece) {
  Array average(averages_[piece.weight].value);
  kernels().of<T>().sgd_update(average.as<T>() + piece.begin, weights_[piece.weight].value.as<T>() + piece.begin,
                               nullptr, piece.count, {.rate = 1 - decay_, .scale = -1, .decay = 1});
}

void WeightAverage::exchange() {
  group_.near_barrier();
  for (std::size_t i = 0; i < averages_.size(); ++i) {
    Array average(averages_[i].value), weight(weights_[i].value);
    auto* bytes = static_cast<std::byte*>(weight.data());
    std::swap_ranges(bytes, bytes + weight.bytes(), static_cast<std::byte*>(average.data()));
  }
  group_.near_barrier();
}

std::size_t WeightAverage::absent_bytes() const {
  std::size_t bytes = 0;
  for (const Store::Entry& weight : weights_) bytes += keeps_ && averages_.empty() ? weight.value.bytes() : 0;
  return bytes;
}

Store WeightAverage::read(const std::string& path) const {
  Store averages;
  if (!keeps_ || !path_exists(path)) return averages;
  const Store read = load_arrays(path);
  for (const Store::Entry& weight : weights_) {
    const Array* average = read.find(weight.name);
    if (average == nullptr || average->dtype() != weight.value.dtype() || average->shape() != weight.value.shape())
      throw FileError(path + " does not hold '" + weight.name + "' as " + name_of(weight.value.dtype()) + " " +
                      to_string(weight.value.shape()) + ": it is from another model");
    averages.add(weight.name, Array(*average));
  }
  return averages;
}

}  // namespace xtape::train
