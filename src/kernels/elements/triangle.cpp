// Triangles of matrices.
#include <algorithm>
#include <cstring>

#include "base/threads/threads.hpp"
#include "kernels/table/kernel_form.hpp"

namespace xtape {

namespace {
/// Returns a kernel that copies the elements of dense matrices on and below a diagonal if `lower`, or on and above the
/// diagonal if not. All other elements become 0.
Kernel make_triangle(const KernelForm& form, bool lower) {
  const Shape& shape = form.shape(0);
  const std::int64_t columns = shape.back(), rows = shape[shape.size() - 2];
  const std::int64_t matrices = rows * columns == 0 ? 0 : count_of(shape) / (rows * columns);
  // Clamping the diagonal does not change which elements are kept.
  const std::int64_t diagonal = std::clamp(form.get<std::int64_t>("diagonal"), -rows, columns);
  const auto bytes = static_cast<std::int64_t>(size_of(form.dtype(0)));
  return {[=, threads = form.threads](const KernelArguments& arguments) {
    const char* from = in<char>(arguments, 0);
    char* to = out<char>(arguments, 0);
    parallel_for(threads, matrices * rows, std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, columns)),
                 [=](std::int64_t begin, std::int64_t finish) {
                   for (std::int64_t k = begin; k < finish; ++k) {
                     const std::int64_t edge =
                         std::clamp<std::int64_t>(k % rows + diagonal + (lower ? 1 : 0), 0, columns);
                     const std::int64_t kept = lower ? 0 : edge, kept_end = lower ? edge : columns;
                     const char* source = from + k * columns * bytes;
                     char* target = to + k * columns * bytes;
                     std::memset(target + (lower ? edge : 0) * bytes, 0,
                                 static_cast<std::size_t>((lower ? columns - edge : edge) * bytes));
                     if (source != target)
                       std::memcpy(target + kept * bytes, source + kept * bytes,
                                   static_cast<std::size_t>((kept_end - kept) * bytes));
                   }
                 });
  }};
}
}  // namespace

KernelList list_triangle() {
  return {{"tril", [](const KernelForm& form) { return make_triangle(form, true); }},
          {"triu", [](const KernelForm& form) { return make_triangle(form, false); }}};
}

}  // namespace xtape
