// Fills dense arrays with constants and indices.

#include <algorithm>

#include "base/threads/threads.hpp"
#include "kernels/elements/scalar.hpp"
#include "kernels/table/kernel_form.hpp"

namespace xtape {

namespace {
// Elements per thread. For fewer elements, waking a thread costs more than it saves.
constexpr std::int64_t fill_grain = 1 << 14;

/// Returns a kernel that fills its output with `value`. If `diagonal`, the diagonal of the output matrix becomes 1.
Kernel make_full(const KernelForm& form, const Literal& value, bool diagonal = false) {
  const Shape& shape = form.outputs[0].shape;
  return with_scalar(form.outputs[0].dtype, [&](auto scalar) {
    using T = decltype(scalar);
    const std::int64_t ones = diagonal ? std::min(shape[0], shape[1]) : 0, apart = diagonal ? shape[1] + 1 : 0;
    return Kernel{[=, element = value.as<T>(), count = count_of(shape),
                   threads = form.threads](const KernelArguments& arguments) {
      T* elements = out<T>(arguments, 0);
      parallel_for(threads, count, fill_grain, [elements, element](std::int64_t begin, std::int64_t finish) {
        std::fill(elements + begin, elements + finish, element);
      });
      for (std::int64_t i = 0; i < ones; ++i) elements[i * apart] = T{1};
    }};
  });
}

/// Sets every element to its index along an axis.
Kernel make_iota(const KernelForm& form) {
  const Shape& shape = form.outputs[0].shape;
  const std::size_t axis = normal_axis(form.get<std::int64_t>("axis"), shape.size());
  std::int64_t inner = 1;
  for (std::size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
  return with_number(form.outputs[0].dtype, [&](auto scalar) {
    using T = decltype(scalar);
    return Kernel{
        [inner, size = shape[axis], count = count_of(shape), threads = form.threads](const KernelArguments& arguments) {
          T* elements = out<T>(arguments, 0);
          parallel_for(threads, count, fill_grain, [elements, inner, size](std::int64_t begin, std::int64_t finish) {
            for (std::int64_t i = begin; i < finish;) {  // runs of consecutive or equal indices
              const std::int64_t index = i / inner % size, step = inner == 1 ? 1 : 0;
              const std::int64_t run = std::min(finish - i, inner == 1 ? size - index : inner - i % inner);
              for (std::int64_t k = 0; k < run; ++k) elements[i + k] = static_cast<T>(index + step * k);
              i += run;
            }
          });
        }};
  });
}
}  // namespace

KernelList list_fill() {
  return {{"zeros", [](const KernelForm& form) { return make_full(form, 0); }},
          {"ones", [](const KernelForm& form) { return make_full(form, 1); }},
          {"full", [](const KernelForm& form) { return make_full(form, form.attributes.number("value")); }},
          {"eye", [](const KernelForm& form) { return make_full(form, 0, true); }},
          {"iota", make_iota}};
}

}  // namespace xtape
