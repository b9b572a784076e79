// Layer normalisation and RMS normalisation of rows, and their gradients.

#include "kernels/table/unrolled.hpp"

#include <array>
#include <cmath>

#include "base/threads/threads.hpp"
#include "kernels/elements/scalar.hpp"
#include "kernels/math/lanes.hpp"
#include "kernels/table/kernel_form.hpp"
#include "kernels/table/scratch.hpp"

namespace xtape {

namespace {
/// The number of rows in a chunk. Contributions to dweight and dbias are first summed within each chunk, then over the
/// chunks.
std::int64_t chunk_rows(std::int64_t rows) {
  return std::max<std::int64_t>(8, (rows + 63) / 64);
}
std::int64_t chunk_count(std::int64_t rows) {
  return (rows + chunk_rows(rows) - 1) / chunk_rows(rows);
}

template <class T>
void write_op(const T* x, const T* weight, const T* bias, T mean, T rstd, T* y, std::int64_t length) {
  using Batch = xsimd::batch<T>;
  const Batch centre(mean);
  const Batch scale(rstd);
  for_lanes<T>(length, [&](std::int64_t i, const auto& lanes) {
    Batch value = (lanes.load(x + i) - centre) * scale;
    if (weight != nullptr) value *= lanes.load(weight + i);
    if (bias != nullptr) value += lanes.load(bias + i);
    lanes.store(y + i, value);
  });
}

template <class T>
double mean_square(const T* x, T centre, std::int64_t length) {
  const xsimd::batch<T> shift(centre);
  return sum_of_lanes<T>(length,
                         [&](std::int64_t i, const auto& lanes) {
                           const auto deviation = lanes.load(x + i, centre) - shift;
                           return deviation * deviation;
                         }) /
         static_cast<double>(length);
}

/// The inputs of the gradient for one row.
template <class T>
struct Row {
  const T* dy;
  const T* x;
  T mean;
  T rstd;
  std::int64_t length;
};

/// dx = rstd * (g - mean(g) - xhat * mean(g * xhat)) with g = dy * weight and xhat = (x - mean) * rstd. The term
/// mean(g) is absent unless `centred`. Adds dy * xhat to `dweight` and dy to `dbias` if they are not null.
template <bool centred, class T>
void row_grad(const Row<T>& row, const T* weight, T* dx, T* dweight, T* dbias) {
  using Batch = xsimd::batch<T>;
  const Batch centre(row.mean);
  const Batch scale(row.rstd);
  const std::array<double, 2> sums = sum_lanes<T, 2>(row.length, [&](std::int64_t i, const auto& lanes) {
    const Batch dy = lanes.load(row.dy + i);
    const Batch normal = (lanes.load(row.x + i) - centre) * scale;
    if (dweight != nullptr) lanes.store(dweight + i, lanes.load(dweight + i) + dy * normal);
    if (dbias != nullptr) lanes.store(dbias + i, lanes.load(dbias + i) + dy);
    const Batch g = weight != nullptr ? dy * lanes.load(weight + i) : dy;  // 0 beyond the end, like dy
    return std::array<Batch, 2>{g, g * normal};
  });
  const double count = static_cast<double>(row.length);
  const Batch common(centred ? static_cast<T>(sums[0] / count) : T{0});
  const Batch along(static_cast<T>(sums[1] / count));
  for_lanes<T>(row.length, [&](std::int64_t i, const auto& lanes) {
    const Batch dy = lanes.load(row.dy + i);
    const Batch normal = (lanes.load(row.x + i) - centre) * scale;
    const Batch g = weight != nullptr ? dy * lanes.load(weight + i) : dy;
    lanes.store(dx + i, (g - common - normal * along) * scale);
  });
}

/// out[i] = the sum over chunks of parts[chunk * stride + i].
template <class T>
void add_chunks(const T* parts, std::int64_t chunks, std::int64_t stride, std::int64_t length, T* out, int threads) {
  parallel_for(threads, length, 1024, [&](std::int64_t begin, std::int64_t finish) {
    std::fill(out + begin, out + finish, T{});
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk)
      for (std::int64_t i = begin; i < finish; ++i) out[i] += parts[chunk * stride + i];
  });
}

/// y = (x - mean) * rstd * weight + bias with rstd = 1 / sqrt(mean((x - mean)^2) + epsilon), for every row. The mean is
/// 0 unless `centred`. Outputs are y, mean (if centred) and rstd.
template <bool centred>
Kernel make_norm(const KernelForm& form) {
  const std::int64_t length = form.shape(0).back(), rows = count_of(form.outputs[1].shape);
  const double epsilon = form.get<double>("epsilon");
  const bool weighted = form.inputs.size() > 1, biased = form.inputs.size() > 2;
  return with_floating(form.dtype(0), [&](auto scalar) {
    using T = decltype(scalar);
    return Kernel{[=, threads = form.threads](const KernelArguments& arguments) {
      const T *x = in<T>(arguments, 0), *weight = in<T>(arguments, 1, weighted), *bias = in<T>(arguments, 2, biased);
      T *y = out<T>(arguments, 0), *means = out<T>(arguments, 1, centred), *rstds = out<T>(arguments, centred ? 2 : 1);
      parallel_for(threads, rows, rows_a_piece(length), [=](std::int64_t begin, std::int64_t finish) {
        for (std::int64_t r = begin; r < finish; ++r) {
          const T* row = x + r * length;
          T mean{0};
          if constexpr (centred)
            mean = means[r] = static_cast<T>(
                sum_of_lanes<T>(length, [&](std::int64_t i, const auto& lanes) { return lanes.load(row + i); }) /
                static_cast<double>(length));
          rstds[r] = static_cast<T>(1 / std::sqrt(mean_square(row, mean, length) + epsilon));
          write_op(row, weight, bias, mean, rstds[r], y + r * length, length);
        }
      });
    }};
  });
}

/// The gradient of layer_norm, or of rms_norm if `mean` is null. `dweight` and `dbias` may be null. Their sums over
/// rows use chunks that depend only on the shape, so the result does not depend on the number of threads. `parts` is
/// [chunks, 2, length].
template <class T>
void norm_grad(const T* dy, const T* x, const T* mean, const T* rstd, const T* weight, T* dx, T* dweight, T* dbias,
               T* parts, std::int64_t rows, std::int64_t length, int threads) {
  const std::int64_t in_chunk = chunk_rows(rows);
  const std::int64_t chunks = chunk_count(rows);
  parallel_for(threads, chunks, 1, [&](std::int64_t begin, std::int64_t finish) {
    for (std::int64_t chunk = begin; chunk < finish; ++chunk) {
      T* weight_part = dweight != nullptr ? parts + chunk * 2 * length : nullptr;
      T* bias_part = dbias != nullptr ? parts + (chunk * 2 + 1) * length : nullptr;
      if (weight_part != nullptr) std::fill_n(weight_part, length, T{});
      if (bias_part != nullptr) std::fill_n(bias_part, length, T{});
      const std::int64_t last = std::min(rows, (chunk + 1) * in_chunk);
      for (std::int64_t r = chunk * in_chunk; r < last; ++r) {
        const Row<T> row{dy + r * length, x + r * length, mean != nullptr ? mean[r] : T{}, rstd[r], length};
        if (mean != nullptr)
          row_grad<true>(row, weight, dx + r * length, weight_part, bias_part);
        else
          row_grad<false>(row, weight, dx + r * length, weight_part, bias_part);
      }
    }
  });
  if (dweight != nullptr) add_chunks(parts, chunks, 2 * length, length, dweight, threads);
  // Without rows there is no scratch memory, and so no offset into it.
  if (dbias != nullptr) add_chunks(chunks > 0 ? parts + length : parts, chunks, 2 * length, length, dbias, threads);
}

Kernel make_norm_grad(const KernelForm& form, bool centred) {
  const std::size_t of_rstd = centred ? 3 : 2;  // inputs: dy, x, mean (if centred), rstd and weight
  const std::int64_t length = form.shape(1).back(), rows = count_of(form.shape(2));
  const bool weighted = form.inputs.size() > of_rstd + 1;
  const bool biased = centred && form.get<bool>("bias");
  const std::int64_t parts = weighted || biased ? chunk_count(rows) * 2 * length : 0;
  return with_floating(form.dtype(1), [&](auto scalar) {
    using T = decltype(scalar);
    return Kernel{[=, threads = form.threads](const KernelArguments& arguments) {
                    norm_grad(in<T>(arguments, 0), in<T>(arguments, 1), in<T>(arguments, 2, centred),
                              in<T>(arguments, of_rstd), in<T>(arguments, of_rstd + 1, weighted), out<T>(arguments, 0),
                              out<T>(arguments, 1, weighted), out<T>(arguments, weighted ? 2 : 1, biased),
                              static_cast<T*>(arguments.scratch), rows, length, threads);
                  },
                  static_cast<std::size_t>(parts) * sizeof(T)};
  });
}
}  // namespace

KernelList list_normalise() {
  return {{"layer_norm", make_norm<true>},
          {"layer_norm_grad", [](const KernelForm& form) { return make_norm_grad(form, true); }},
          {"rms_norm", make_norm<false>},
          {"rms_norm_grad", [](const KernelForm& form) { return make_norm_grad(form, false); }}};
}

}  // namespace xtape
