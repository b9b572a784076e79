#include "base/arrays/elements.hpp"

#include <algorithm>
#include <cmath>

#include "base/arrays/visit.hpp"
#include "base/blocks/block_formats.hpp"
#include "base/threads/threads.hpp"

namespace xtape {

namespace {
/// Decodes blocks on all threads.
void decode_blocks(const ArrayView& blocks, float* to) {
  const BlockFormat& format = *find_block_format(name_of(blocks.dtype()));
  const auto* from = static_cast<const std::byte*>(blocks.data());
  constexpr std::int64_t grain = 64;
  parallel_for(thread_count(), count_of(blocks.shape()) / format.elements, grain,
               [&](std::int64_t begin, std::int64_t finish) {
                 format.decode(from + begin * format.bytes, to + begin * format.elements, finish - begin);
               });
}
}  // namespace

void convert_floats(const Array& from, Array& to) {
  if (is_block(from.dtype()))
    return to.dtype() == Dtype::float32 ? decode_blocks(from, to.as<float>())
                                        : convert_floats(numbers_of_blocks(from), to);
  constexpr std::int64_t grain = 1 << 14;
  visit_floats(from, [&](const auto* given) {
    visit_floats(to, [&]<class T>(T* converted) {
      parallel_for(thread_count(), from.count(), grain, [&](std::int64_t begin, std::int64_t finish) {
        for (std::int64_t i = begin; i < finish; ++i) converted[i] = static_cast<T>(given[i]);
      });
    });
  });
}

Array numbers_of_blocks(const ArrayView& blocks) {
  if (!blocks.layout().contiguous() || blocks.layout().offset != 0 ||
      count_of(blocks.shape()) % block_of(blocks.dtype()) != 0)
    throw DtypeError(std::string("a part or a transpose of an array of ") + name_of(blocks.dtype()) +
                     " has no elements: dequantize it");
  Array numbers(Dtype::float32, blocks.shape());
  decode_blocks(blocks, numbers.as<float>());
  return numbers;
}

std::vector<std::int64_t> index_of(std::int64_t element, const Shape& shape) {
  std::vector<std::int64_t> index(shape.size());
  for (std::size_t axis = index.size(); axis-- > 0; element /= shape[axis]) index[axis] = element % shape[axis];
  return index;
}

std::string index_text(const std::vector<std::int64_t>& index) {
  std::string text;
  for (const std::int64_t each : index) text += (text.empty() ? "" : ", ") + std::to_string(each);
  return "[" + text + "]";
}

bool all_finite(const ArrayView& values) {
  const std::int64_t count = count_of(values.shape());
  bool finite = true;
  visit_floats(values, [&](const auto* elements) {
    finite =
        std::all_of(elements, elements + count, [](auto each) { return std::isfinite(static_cast<double>(each)); });
  });
  return finite;
}

}  // namespace xtape
