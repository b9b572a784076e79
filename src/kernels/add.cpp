#include "add.hpp"

namespace xtape {

template <class T>
void add_arrays(const T* a, const T* b, T* to, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) to[i] = a[i] + b[i];
}
template void add_arrays<float>(const float*, const float*, float*, std::int64_t);
template void add_arrays<double>(const double*, const double*, double*, std::int64_t);

}  // namespace xtape
