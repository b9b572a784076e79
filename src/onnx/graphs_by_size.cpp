#include "onnx/graphs_by_size.hpp"

#include <algorithm>
#include <protozero/pbf_reader.hpp>

#include "base/messages/wording.hpp"

namespace xtape::onnx {

using protozero::pbf_reader;

namespace {
__extension__ using Wide = __int128;

/// Returns the name of the first node that differs.
std::string first_difference(const std::string& a, const std::string& b) {
  pbf_reader ours(a), theirs(b);
  while (ours.next()) {
    const auto node = ours.get_view();
    if (theirs.next() && theirs.get_view() == node) continue;
    pbf_reader fields(node);
    return fields.next(3) ? fields.get_string() : "";
  }
  return "";
}
}  // namespace

Graphs::Graphs(const Names& open, const SizeValues& values, const std::function<WrittenGraph(const NamedSizes&)>& write)
    : open_(open), values_(values) {
  const std::size_t corners = std::size_t{1} << open.size();
  for (std::size_t k = 0; k <= corners; ++k) {
    NamedSizes sizes;
    for (std::size_t i = 0; i < open.size(); ++i) sizes.add(open[i], values[i][k == corners ? 2 : k >> i & 1]);
    graphs_.push_back(write(sizes));
  }
}

void Graphs::check_alike() const {
  for (std::size_t k = 1; k < graphs_.size(); ++k) {
    const WrittenGraph &a = first(), &b = graphs_[k];
    const auto same_name = [](const Initialiser& x, const Initialiser& y) { return x.name == y.name; };
    const auto same_kind = [](const auto& x, const auto& y) {
      return x.name == y.name && x.value.dtype == y.value.dtype && x.value.shape.size() == y.value.shape.size();
    };
    const auto alike = [](const auto& x, const auto& y, const auto& same) {
      return std::equal(x.begin(), x.end(), y.begin(), y.end(), same);
    };
    if (a.nodes != b.nodes) refuse(k, first_difference(a.nodes, b.nodes));
    if (a.shared.constants != b.shared.constants)
      refuse(k, reader_of(first_difference(a.shared.constants, b.shared.constants)));
    if (!alike(a.shared.initialisers, b.shared.initialisers, same_name) || !alike(a.inputs, b.inputs, same_kind) ||
        !alike(a.outputs, b.outputs, same_kind) || !alike(a.values, b.values, same_kind))
      refuse(k, "");
  }
}

std::optional<Polynomial> Graphs::polynomial(const std::function<std::int64_t(const WrittenGraph&)>& number) const {
  constexpr std::int64_t largest = std::int64_t{1} << 40;  // larger numbers are the ends of slices without an end
  std::vector<Wide> factors;
  bool same = true;
  for (const WrittenGraph& graph : graphs_) {
    factors.push_back(number(graph));
    same = same && factors.back() == factors.front();
    if (!same && (factors.back() > largest || factors.back() < -largest)) return std::nullopt;
  }
  const Wide checked = factors.back();
  factors.pop_back();
  if (!same && (factors[0] > largest || factors[0] < -largest)) return std::nullopt;
  for (std::size_t i = 0; i < open_.size(); ++i)  // fits a line through two numbers for each size
    for (std::size_t k = 0; k < factors.size(); ++k) {
      const std::size_t bit = std::size_t{1} << i;
      if ((k & bit) != 0) continue;
      const Wide rise = factors[k | bit] - factors[k], run = values_[i][1] - values_[i][0];
      if (rise % run != 0) return std::nullopt;
      factors[k | bit] = rise / run;
      factors[k] -= rise / run * values_[i][0];
    }
  Polynomial known;
  Wide sum = 0;
  for (std::size_t k = 0; k < factors.size(); ++k) {
    Wide product = factors[k];
    for (std::size_t i = 0; i < open_.size(); ++i)
      if ((k >> i & 1) != 0) product *= values_[i][2];
    sum += product;
    known.push_back(static_cast<std::int64_t>(factors[k]));
    if (known.back() != factors[k]) return std::nullopt;
  }
  if (sum != checked) return std::nullopt;
  return known;
}

void Graphs::refuse_array(std::size_t index) const {
  const Array& array = first().shared.initialisers[index].array;
  std::size_t k = 1;
  while (same_elements(array, graphs_[k].shared.initialisers[index].array)) ++k;
  refuse(k, reader_of(first().shared.initialisers[index].name));
}

/// Returns the name of the first node that reads the value.
std::string Graphs::reader_of(const std::string& value) const {
  if (value.empty()) return "";
  pbf_reader nodes(first().nodes);
  while (nodes.next()) {
    const auto node = nodes.get_view();
    std::string name;
    bool reads = false;
    for (pbf_reader fields(node); fields.next();)
      if (fields.tag() == 1)
        reads = fields.get_string() == value || reads;
      else if (fields.tag() == 3)
        name = fields.get_string();
      else
        fields.skip();
    if (reads) return name;
  }
  return value;
}

void Graphs::refuse(std::size_t graph, const std::string& node) const {
  Names changed;
  for (std::size_t i = 0; i < open_.size(); ++i)
    if (graph == graphs_.size() - 1 || (graph >> i & 1) != 0) changed.push_back(open_[i]);
  throw Error((node.empty() ? "the graph" : "node '" + node + "'") + " depends on the size " + joined(changed) +
              " in a way that a file with open sizes cannot say: give it as a number");
}

}  // namespace xtape::onnx
