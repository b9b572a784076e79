#include "base/arrays/element_index.hpp"

namespace xtape {

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

}  // namespace xtape
