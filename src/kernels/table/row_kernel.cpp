#include "kernels/table/row_kernel.hpp"

#include <algorithm>

namespace xtape {

bool RowKernel::add(const Layout& layout, std::size_t element_bytes, bool has_rows) {
  if (std::ranges::any_of(layout.strides, [](std::int64_t stride) { return stride < 0; })) return false;
  std::int64_t row = 1;
  for (std::size_t axis = 1; axis < layout.shape.size(); ++axis) row += (layout.shape[axis] - 1) * layout.strides[axis];
  const auto bytes = static_cast<std::int64_t>(element_bytes);
  operands.push_back({has_rows ? layout.strides[0] * bytes : 0, row * bytes});
  return true;
}

void RowCopy::operator()(const void* from, void* to, std::int64_t begin, std::int64_t end) const {
  for (std::int64_t i = begin; i < end; ++i)
    row(static_cast<const std::byte*>(from) + i * from_stride, static_cast<std::byte*>(to) + i * to_stride);
}

Layout row_of(Layout layout) {
  layout.shape.erase(0);
  layout.strides.erase(0);
  return layout;
}

const RowKernel* row_kernel_of(const Kernel& kernel) {
  return kernel.run.target<RowKernel>();
}

}  // namespace xtape
