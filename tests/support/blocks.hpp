/// Arrays in blocks with given numbers.
#pragma once

#include "base/blocks/block_formats.hpp"
#include "xtape/array.hpp"

namespace xtape {

/// Returns an array in blocks. `next` gives the numbers that are rounded to it.
template <class Next>
Array rounded_to_blocks(Dtype dtype, const Shape& shape, const Next& next) {
  Array floats(Dtype::float32, shape), blocks(dtype, shape);
  for (std::int64_t i = 0; i < floats.count(); ++i) floats.as<float>()[i] = next(i);
  const BlockFormat& format = *find_block_format(name_of(dtype));
  format.encode(floats.as<float>(), static_cast<std::byte*>(blocks.data()), floats.count() / format.elements);
  return blocks;
}

/// Returns the numbers of an array in blocks.
inline Array decoded_blocks(const Array& blocks) {
  Array floats(Dtype::float32, blocks.shape());
  const BlockFormat& format = *find_block_format(name_of(blocks.dtype()));
  format.decode(static_cast<const std::byte*>(blocks.data()), floats.as<float>(), floats.count() / format.elements);
  return floats;
}

}  // namespace xtape
