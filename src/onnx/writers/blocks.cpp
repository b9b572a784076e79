// Weights in blocks, as DequantizeLinear.
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/blocks/block_formats.hpp"
#include "onnx/writing.hpp"

namespace xtape::onnx {

namespace {
/// The numbers of all groups of neighbours that share a scale, as scale * number - minimum.
struct ScaledGroups {
  std::int64_t size;  ///< Numbers of a group.
  Array numbers;      ///< int8.
  std::vector<float> scales, minima;
};

template <class B>
void add_parts(const B& parts, ScaledGroups& groups) {
  const block::PartScales scales = block::part_scales(parts.scales);
  for (std::size_t i = 0; i < 8; ++i) {
    groups.scales.push_back(static_cast<float>(parts.scale) * static_cast<float>(scales.scales[i]));
    groups.minima.push_back(static_cast<float>(parts.minimum) * static_cast<float>(scales.minima[i]));
  }
}

void add_scales(const block::Q4_K& block, ScaledGroups& groups) {
  add_parts(block, groups);
}
void add_scales(const block::Q5_K& block, ScaledGroups& groups) {
  add_parts(block, groups);
}
void add_scales(const block::Q6_K& block, ScaledGroups& groups) {
  for (const std::int8_t scale : block.scales)
    groups.scales.push_back(static_cast<float>(block.scale) * static_cast<float>(scale));
}
void add_scales(const block::Q8_0& block, ScaledGroups& groups) {
  groups.scales.push_back(block.scale);
}
void add_scales(const block::Q4_0& block, ScaledGroups& groups) {
  groups.scales.push_back(block.scale);
}

template <class B>
ScaledGroups groups_of(const Array& array, std::int64_t size) {
  ScaledGroups groups{size, Array(Dtype::int8, array.shape()), {}, {}};
  const BlockFormat& format = *find_block_format(name_of(array.dtype()));
  const auto* blocks = static_cast<const B*>(array.data());
  std::vector<float> values(static_cast<std::size_t>(array.count()));
  format.decode(static_cast<const std::byte*>(array.data()), values.data(), array.count() / format.elements);
  for (std::int64_t i = 0; i < array.count() / format.elements; ++i) add_scales(blocks[i], groups);
  groups.minima.resize(groups.minima.empty() ? 0 : groups.scales.size());
  for (std::int64_t i = 0; i < array.count(); ++i) {
    const double scale = groups.scales[i / size], minimum = groups.minima.empty() ? 0 : groups.minima[i / size];
    groups.numbers.template as<std::int8_t>()[i] =
        static_cast<std::int8_t>(scale == 0 || !std::isfinite(scale) ? 0 : std::lround((values[i] + minimum) / scale));
  }
  return groups;
}

ScaledGroups groups_of(const Array& array) {
  switch (array.dtype()) {
    case Dtype::q4_0:
      return groups_of<block::Q4_0>(array, 32);
    case Dtype::q4_k:
      return groups_of<block::Q4_K>(array, 32);
    case Dtype::q5_k:
      return groups_of<block::Q5_K>(array, 32);
    case Dtype::q6_k:
      return groups_of<block::Q6_K>(array, 16);
    default:
      return groups_of<block::Q8_0>(array, 32);
  }
}

Array column_of(const std::vector<float>& numbers, const Shape& shape) {
  Array column(Dtype::float32, shape);
  std::copy(numbers.begin(), numbers.end(), column.as<float>());
  return column;
}
}  // namespace

std::string add_blocks(GraphWriter& graph, const std::string& name, const Array& array) {
  ScaledGroups groups = groups_of(array);
  Shared& shared = graph.shared();
  const std::string hint = name.empty() ? "blocks" : name;
  const Shape flat{array.count() / groups.size, groups.size}, column{flat[0], 1};
  Shape scales = array.shape();
  const bool along_last = shared.opset >= 21 && !scales.empty() && scales.back() % groups.size == 0;
  if (along_last) scales.back() /= groups.size;
  const std::string numbers = shared.add(hint, along_last ? groups.numbers : groups.numbers.first(flat));
  const std::string scale = shared.add(hint + ".scale", column_of(groups.scales, along_last ? scales : Shape{flat[0]}));
  const WrittenAttributes blocked{{"axis", -1}, {"block_size", groups.size}}, by_rows{{"axis", 0}};
  std::string result = graph.add("DequantizeLinear", {numbers, scale}, 1, along_last ? blocked : by_rows)[0];
  const auto reshape = [&](const Shape& shape) {
    Array sizes(Dtype::int64, {static_cast<std::int64_t>(shape.size())});
    std::copy(shape.begin(), shape.end(), sizes.as<std::int64_t>());
    result = graph.add("Reshape", {result, shared.constant(sizes)}, 1, {})[0];
  };
  if (!groups.minima.empty()) {
    if (along_last) reshape(flat);
    const std::string minima = shared.add(hint + ".minimum", column_of(groups.minima, column));
    result = graph.add("Sub", {result, minima}, 1, {})[0];
  }
  if (!along_last || !groups.minima.empty()) reshape(array.shape());
  return result;
}

}  // namespace xtape::onnx
