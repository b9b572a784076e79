// The sparsity of Jacobians and Hessians, and how many plays of tangents they need.
#include <algorithm>

#include "base/arrays/lengths.hpp"
#include "base/bytes/encodings.hpp"
#include "report/gathered.hpp"
#include "xtape/op/op.hpp"
#include "xtape/sparse.hpp"

namespace xtape::report_data {

namespace {
/// The cells of an axis: `size` elements in at most 192 groups of neighbours.
struct Cells {
  std::int64_t size, count;
  explicit Cells(std::int64_t of) : size(of), count(std::min<std::int64_t>(192, of)) {}
  std::int64_t of(std::int64_t element) const { return element * count / size; }
  std::int64_t width(std::int64_t cell) const {
    return ceiling((cell + 1) * size, count) - ceiling(cell * size, count);
  }
};

/// The pattern as a picture: 0 where there is no element, otherwise 1 to 254 for the share of the cell's elements.
Json picture_of(const SparsityPattern& pattern) {
  const Cells rows(pattern.shape[0]), columns(pattern.shape[1]);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(rows.count * columns.count), 0);
  for (std::size_t i = 0; i < pattern.size(); ++i)
    ++counts[rows.of(pattern.rows[i]) * columns.count + columns.of(pattern.columns[i])];
  std::string bytes;
  for (std::int64_t row = 0; row < rows.count; ++row)
    for (std::int64_t column = 0; column < columns.count; ++column) {
      const std::int64_t count = counts[row * columns.count + column];
      const auto area = static_cast<double>(rows.width(row) * columns.width(column));
      bytes += static_cast<char>(count == 0 ? 0 : 1 + static_cast<int>(253 * static_cast<double>(count) / area));
    }
  return {{"rows", rows.count}, {"columns", columns.count}, {"pixels", to_base64(bytes)}};
}

std::int64_t number_of(const std::vector<std::int64_t>& colours) {
  return colours.empty() ? 0 : *std::ranges::max_element(colours) + 1;
}
}  // namespace

Json sparsity_of(const RecordedPlay& play, Sparsity of) {
  constexpr double most = 1 << 27;  // elements of patterns by one parameter
  const Tape& tape = play.tape;
  const Var& output = play.outputs.at(0);
  const bool hessian = of == Sparsity::hessian;
  Json matrices = Json::array(), left_out = Json::array();
  const auto add = [&](ValueId id) {
    const Var input = tape.var(id);
    if (!is_floating(input.dtype())) return;
    const SparsityPattern pattern = hessian ? hessian_sparsity(output, input) : jacobian_sparsity(output, input);
    Json json = {{"input", id.node},
                 {"rows", pattern.shape[0]},
                 {"columns", pattern.shape[1]},
                 {"elements", pattern.size()},
                 {"picture", picture_of(pattern)}};
    if (hessian) {
      json["products"] = number_of(colour_symmetric(pattern));
    } else {
      json["tangents"] = number_of(colour_columns(pattern));
      json["cotangents"] = number_of(colour_rows(pattern));
    }
    matrices.push_back(std::move(json));
  };
  for (const ValueId id : tape.inputs()) add(id);
  double elements = 0;  // of all values that the output may need
  for (std::int32_t i = 0; i <= output.id().node; ++i)
    for (const ValueType& type : tape.node(i).outputs) elements += static_cast<double>(count_of(type.shape));
  for (std::int32_t i = 0; i <= output.id().node; ++i) {
    const Node& node = tape.node(i);
    if (node.op != &parameter_op()) continue;
    if (elements * static_cast<double>(node.storage.count()) > most)
      left_out.push_back(node.name);
    else
      add({i, 0});
  }
  if (matrices.empty() && left_out.empty())
    throw DtypeError("the sparsity of a matrix of derivatives needs an input or a parameter of floats; there is none");
  return {{"kind", hessian ? "Hessian" : "Jacobian"},
          {"output", output.id().node},
          {"matrices", matrices},
          {"left_out", left_out},
          {"most", most}};
}

}  // namespace xtape::report_data
