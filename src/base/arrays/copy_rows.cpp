#include <cstddef>
#include <cstring>

#include "base/arrays/elements.hpp"

namespace xtape {

void copy_rows(const ArrayView& from, const std::uint32_t* rows, std::int64_t count, void* to) {
  const Layout& layout = from.layout();
  const Layout row = {Shape(layout.shape.begin() + 1, layout.shape.end()),
                      Strides(layout.strides.begin() + 1, layout.strides.end()), 0};
  const auto element = static_cast<std::int64_t>(size_of(from.dtype()));
  const std::int64_t bytes = count_of(row.shape) * element;
  if (bytes == 0) return;
  auto* at = static_cast<std::byte*>(to);
  for (std::int64_t i = 0; i < count; ++i, at += bytes) {
    const std::int64_t offset = layout.offset + static_cast<std::int64_t>(rows[i]) * layout.strides[0];
    if (row.contiguous())
      std::memcpy(at, static_cast<const std::byte*>(from.data()) + offset * element, static_cast<std::size_t>(bytes));
    else
      ArrayView(from.data(), from.dtype(), {row.shape, row.strides, offset}).copy_to(at);
  }
}

}  // namespace xtape
