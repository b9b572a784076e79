// Normalisation of channels with the statistics of a batch, and its gradient.

#include <algorithm>
#include <array>
#include <cmath>

#include "base/arrays/lengths.hpp"
#include "base/threads/threads.hpp"
#include "kernels/elements/scalar.hpp"
#include "kernels/math/lanes.hpp"
#include "kernels/table/kernel_form.hpp"

namespace xtape {

namespace {
/// An array [examples, channels, places]. A row is the `places` elements of one channel of one example. Channels are
/// processed in groups, one group after the other. All sweeps over a group except the first then find most of the group
/// in the second-level cache. The rows of a group that are neighbours in memory are read together. If rows are long, a
/// group has a single channel.
struct Channels {
  static constexpr std::int64_t most = 64;  // channels per group
  // The neighbouring rows of a group have at least this many elements together. The processor then prefetches the
  // elements.
  static constexpr std::int64_t read_on = 1024;

  std::int64_t examples, channels, places = 1, group;
  Channels(const Shape& shape, int threads) : examples(shape[0]), channels(shape[1]) {
    for (std::size_t axis = 2; axis < shape.size(); ++axis) places *= shape[axis];
    group = most;
    if (!in_rows()) return;
    const std::int64_t shared = std::max<std::int64_t>(1, channels / (2 * threads));  // so that no thread is idle
    group = std::clamp<std::int64_t>(read_on / places, 1, std::min(most, shared));
  }
  bool in_rows() const { return places >= 16; }
  double count() const { return static_cast<double>(examples * places); }  ///< The number of elements of a channel.

  /// Calls each(first, last) for the channels of each group.
  template <class Each>
  void for_groups(int threads, const Each& each) const {
    parallel_for(threads, ceiling(channels, group), 1, [&](std::int64_t begin, std::int64_t finish) {
      for (std::int64_t i = begin; i < finish; ++i) each(i * group, std::min(channels, (i + 1) * group));
    });
  }
  /// Calls row(channel, place of the first element) for the rows of some channels. Can also iterate in reverse order.
  template <class Row>
  void for_rows(std::int64_t first, std::int64_t last, const Row& row) const {
    for (std::int64_t example = 0; example < examples; ++example)
      for (std::int64_t channel = first; channel < last; ++channel)
        row(channel, (example * channels + channel) * places);
  }
  template <class Row>
  void for_rows_back(std::int64_t first, std::int64_t last, const Row& row) const {
    for (std::int64_t example = examples; example-- > 0;)
      for (std::int64_t channel = last; channel-- > first;) row(channel, (example * channels + channel) * places);
  }
};

/// A single element, with the interface of AllLanes.
template <class T>
struct OneLane {
  T load(const T* from, T /*fill*/ = T{}) const { return *from; }
  void store(T* to, T value) const { *to = value; }
};

/// Computes n sums for each of some channels. of_channel(channel)(place, lanes) returns n registers with the terms of
/// these sums.
template <class T, std::size_t n, class OfChannel>
void add_up(const Channels& all, std::int64_t first, std::int64_t last, const OfChannel& of_channel,
            std::array<double, n>* sums) {
  std::fill(sums, sums + (last - first), std::array<double, n>{});
  all.for_rows(first, last, [&](std::int64_t channel, std::int64_t row) {
    const auto term = of_channel(channel);
    std::array<double, n>& sum = sums[channel - first];
    const auto add = [&sum](const auto& terms) {
      for (std::size_t k = 0; k < n; ++k) sum[k] += static_cast<double>(terms[k]);
    };
    if (all.in_rows())
      add(sum_lanes<T, n>(all.places, [&](std::int64_t i, const auto& lanes) { return term(row + i, lanes); }));
    else
      for (std::int64_t i = 0; i < all.places; ++i) add(term(row + i, OneLane<T>{}));
  });
}

/// Calls of_channel(channel)(place, lanes) for all elements of some channels. Begins with the last rows, because the
/// previous sweep has left them in the cache.
template <class T, class OfChannel>
void visit(const Channels& all, std::int64_t first, std::int64_t last, const OfChannel& of_channel) {
  all.for_rows_back(first, last, [&](std::int64_t channel, std::int64_t row) {
    const auto each = of_channel(channel);
    if (all.in_rows())
      for_lanes<T>(all.places, [&](std::int64_t i, const auto& lanes) { each(row + i, lanes); });
    else
      for (std::int64_t i = 0; i < all.places; ++i) each(row + i, OneLane<T>{});
  });
}

/// y = (x - mean) * rstd * weight + bias, with the mean and rstd = 1 / sqrt(variance + epsilon) of each channel.
/// Outputs are y, mean, the unbiased variance and rstd.
[[gnu::cold]] Kernel make_batch_norm(const KernelForm& form) {
  const Channels all(form.shape(0), form.threads);
  const double epsilon = form.get<double>("epsilon");
  const bool weighted = form.inputs.size() > 1, biased = form.inputs.size() > 2;
  return with_floating(form.dtype(0), [&](auto scalar) {
    using T = decltype(scalar);
    return Kernel{[=, threads = form.threads](const KernelArguments& arguments) {
      const T *x = in<T>(arguments, 0), *weight = in<T>(arguments, 1, weighted), *bias = in<T>(arguments, 2, biased);
      T *y = out<T>(arguments, 0), *mean = out<T>(arguments, 1), *variance = out<T>(arguments, 2),
        *rstd = out<T>(arguments, 3);
      all.for_groups(threads, [=](std::int64_t first, std::int64_t last) {
        std::array<double, 1> sums[Channels::most];
        add_up<T, 1>(
            all, first, last,
            [=](std::int64_t) {
              return [=](std::int64_t i, const auto& lanes) { return std::array{lanes.load(x + i)}; };
            },
            sums);
        for (std::int64_t c = first; c < last; ++c) mean[c] = static_cast<T>(sums[c - first][0] / all.count());
        add_up<T, 1>(
            all, first, last,
            [=](std::int64_t c) {
              return [x, centre = mean[c]](std::int64_t i, const auto& lanes) {
                using Lanes = decltype(lanes.load(x));
                const Lanes deviation = lanes.load(x + i, centre) - Lanes(centre);
                return std::array{Lanes(deviation * deviation)};
              };
            },
            sums);
        for (std::int64_t c = first; c < last; ++c) {
          const double squares = sums[c - first][0];
          variance[c] = static_cast<T>(squares / (all.count() - 1));
          rstd[c] = static_cast<T>(1 / std::sqrt(squares / all.count() + epsilon));
        }
        visit<T>(all, first, last, [=](std::int64_t c) {
          return [x, y, centre = mean[c], scale = weighted ? rstd[c] * weight[c] : rstd[c],
                  shift = biased ? bias[c] : T{}](std::int64_t i, const auto& lanes) {
            using Lanes = decltype(lanes.load(x));
            lanes.store(y + i, (lanes.load(x + i) - Lanes(centre)) * Lanes(scale) + Lanes(shift));
          };
        });
      });
    }};
  });
}

/// The gradient: dx = rstd * weight * (dy - mean(dy) - xhat * mean(dy * xhat)) with xhat = (x - mean) * rstd. dweight
/// is the sum of dy * xhat, and dbias is the sum of dy.
[[gnu::cold]] Kernel make_batch_norm_grad(const KernelForm& form) {
  const Channels all(form.shape(0), form.threads);
  const bool weighted = form.inputs.size() > 4, biased = form.get<bool>("bias");
  return with_floating(form.dtype(0), [&](auto scalar) {
    using T = decltype(scalar);
    return Kernel{[=, threads = form.threads](const KernelArguments& arguments) {
      const T *dy = in<T>(arguments, 0), *x = in<T>(arguments, 1), *mean = in<T>(arguments, 2),
              *rstd = in<T>(arguments, 3), *weight = in<T>(arguments, 4, weighted);
      T *dx = out<T>(arguments, 0), *dweight = out<T>(arguments, 1, weighted),
        *dbias = out<T>(arguments, weighted ? 2 : 1, biased);
      all.for_groups(threads, [=](std::int64_t first, std::int64_t last) {
        std::array<double, 2> sums[Channels::most];
        add_up<T, 2>(
            all, first, last,
            [=](std::int64_t c) {
              return [dy, x, centre = mean[c], scale = rstd[c]](std::int64_t i, const auto& lanes) {
                using Lanes = decltype(lanes.load(x));
                const Lanes cotangent = lanes.load(dy + i);
                return std::array{cotangent, Lanes(cotangent * ((lanes.load(x + i) - Lanes(centre)) * Lanes(scale)))};
              };
            },
            sums);
        visit<T>(all, first, last, [=, &sums](std::int64_t c) {
          const auto [along_bias, along_weight] = sums[c - first];
          return [dy, x, dx, centre = mean[c], common = static_cast<T>(along_bias / all.count()),
                  along = static_cast<T>(along_weight / all.count() * static_cast<double>(rstd[c])),
                  scale = weighted ? rstd[c] * weight[c] : rstd[c]](std::int64_t i, const auto& lanes) {
            using Lanes = decltype(lanes.load(x));
            const Lanes deviation = lanes.load(x + i) - Lanes(centre);
            lanes.store(dx + i, (lanes.load(dy + i) - Lanes(common) - deviation * Lanes(along)) * Lanes(scale));
          };
        });
        for (std::int64_t c = first; c < last; ++c) {
          if (biased) dbias[c] = static_cast<T>(sums[c - first][0]);
          if (weighted) dweight[c] = static_cast<T>(sums[c - first][1]);
        }
      });
    }};
  });
}
}  // namespace

KernelList list_batch_norm() {
  return {{"batch_norm_training", make_batch_norm}, {"batch_norm_grad", make_batch_norm_grad}};
}

}  // namespace xtape
