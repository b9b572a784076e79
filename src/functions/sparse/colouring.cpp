#include "functions/sparse/colouring.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "base/system/process_memory.hpp"
#include "xtape/error.hpp"

namespace xtape {

namespace {
constexpr std::int64_t uncoloured = -1;

std::string at(const SparsityPattern& pattern, std::size_t i) {
  return "(" + std::to_string(pattern.rows[i]) + ", " + std::to_string(pattern.columns[i]) + ")";
}

/// Returns 0 … count - 1, sorted by the length of their lists, the longest first.
std::vector<std::int64_t> longest_first(const Adjacency& lists) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(lists.count()));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order,
                           [&](std::int64_t a, std::int64_t b) { return lists.of(a).size() > lists.of(b).size(); });
  return order;
}

/// The colours that the current vertex may not get.
class Forbidden {
 public:
  void start(std::int64_t vertex) { vertex_ = vertex; }
  void add(std::int64_t colour) {
    if (colour == uncoloured) return;
    if (static_cast<std::size_t>(colour) >= by_.size()) by_.resize(static_cast<std::size_t>(colour) + 1, -1);
    by_[static_cast<std::size_t>(colour)] = vertex_;
  }
  std::int64_t first_allowed() const {
    std::int64_t colour = 0;
    while (static_cast<std::size_t>(colour) < by_.size() && by_[static_cast<std::size_t>(colour)] == vertex_) ++colour;
    return colour;
  }

 private:
  std::vector<std::int64_t> by_;  // per colour: the last vertex for which the colour was forbidden
  std::int64_t vertex_ = -1;
};

/// Returns the colours of the columns of a matrix. `columns` has for each column the list of its rows. `rows` has for
/// each row the list of its columns.
std::vector<std::int64_t> coloured(const Adjacency& columns, const Adjacency& rows) {
  std::vector<std::int64_t> colours(static_cast<std::size_t>(columns.count()), uncoloured);
  Forbidden forbidden;
  for (const std::int64_t column : longest_first(columns)) {
    forbidden.start(column);
    for (const std::int64_t row : columns.of(column))
      for (const std::int64_t other : rows.of(row)) forbidden.add(colours[other]);
    colours[column] = forbidden.first_allowed();
  }
  return colours;
}

/// A star colouring in progress. Neighbours get different colours, and every path of four vertices has at least three
/// colours. The vertices of any two colours therefore form stars: a hub whose neighbours, the spokes, all have the
/// other colour.
class StarColouring {
 public:
  explicit StarColouring(const Adjacency& graph)
      : graph_(graph), colours_(static_cast<std::size_t>(graph.count()), uncoloured), hubs_(colours_.size()) {}

  std::vector<std::int64_t> run() {
    for (const std::int64_t vertex : longest_first(graph_)) {
      forbid(vertex);
      colours_[vertex] = forbidden_.first_allowed();
      update(vertex);
    }
    return std::move(colours_);
  }

 private:
  struct Spoke {
    std::int64_t vertex = -1;
    bool has_others = false;
  };
  Spoke& first_spoke(std::int64_t hub, std::int64_t colour) {
    return first_[static_cast<std::uint64_t>(hub) * colours_.size() + static_cast<std::uint64_t>(colour)];
  }

  void forbid(std::int64_t vertex) {
    forbidden_.start(vertex);
    repeated_.clear();
    for (const std::int64_t near : graph_.of(vertex)) {
      const std::int64_t colour = colours_[near];
      if (near == vertex || colour == uncoloured) continue;
      forbidden_.add(colour);
      // path: vertex - near - hub - another spoke of the hub
      for (const std::int64_t hub : hubs_[near]) forbidden_.add(colours_[hub]);
      Spoke& first = first_spoke(vertex, colour);
      if (first.vertex < 0) {
        first.vertex = near;
        continue;
      }
      if (!first.has_others) repeated_.push_back(first.vertex);
      first.has_others = true;
      repeated_.push_back(near);
    }
    // path: any - near - vertex - another neighbour with the colour of near
    for (const std::int64_t near : repeated_)
      for (const std::int64_t any : graph_.of(near)) forbidden_.add(colours_[any]);
  }

  void update(std::int64_t vertex) {
    for (const std::int64_t near : repeated_) hubs_[near].push_back(vertex);
    for (const std::int64_t near : graph_.of(vertex)) {
      if (near == vertex || colours_[near] == uncoloured) continue;
      Spoke& first = first_spoke(near, colours_[vertex]);
      if (first.vertex < 0) {
        first.vertex = vertex;
        continue;
      }
      if (!first.has_others) hubs_[first.vertex].push_back(near);
      first.has_others = true;
      hubs_[vertex].push_back(near);
    }
  }

  const Adjacency& graph_;
  std::vector<std::int64_t> colours_;
  std::vector<std::vector<std::int64_t>> hubs_;     // per vertex: the hubs of the stars in which it is a spoke
  std::unordered_map<std::uint64_t, Spoke> first_;  // per vertex and colour: the first neighbour with this colour
  std::vector<std::int64_t> repeated_;  // the neighbours of a vertex that share their colour with another neighbour
  Forbidden forbidden_;
};
}  // namespace

bool operator==(const SparsityPattern& a, const SparsityPattern& b) {
  return a.shape == b.shape && a.rows == b.rows && a.columns == b.columns;
}

void check_pattern(const SparsityPattern& pattern, const std::string& what) {
  if (pattern.shape.size() != 2 || pattern.shape[0] < 0 || pattern.shape[1] < 0)
    throw ShapeError(what + ": the shape of a pattern must be rows and columns, got " + to_string(pattern.shape));
  if (pattern.rows.size() != pattern.columns.size())
    throw Error(what + ": the pattern has " + std::to_string(pattern.rows.size()) + " rows and " +
                std::to_string(pattern.columns.size()) + " columns: each element needs both");
  for (std::size_t i = 0; i < pattern.size(); ++i)
    if (pattern.rows[i] < 0 || pattern.rows[i] >= pattern.shape[0] || pattern.columns[i] < 0 ||
        pattern.columns[i] >= pattern.shape[1])
      throw Error(what + ": element " + at(pattern, i) + " of the pattern is outside of its shape " +
                  to_string(pattern.shape));
  // The largest tables of the colourings have a few numbers for each row and each column.
  for (const std::int64_t count : pattern.shape)
    require_memory_left(static_cast<std::size_t>(count), 4 * sizeof(std::int64_t),
                        what + ": a pattern of shape " + to_string(pattern.shape));
  const Adjacency rows(pattern.rows, pattern.columns, pattern.shape[0]);
  std::vector<std::int64_t> last(static_cast<std::size_t>(pattern.shape[1]), -1);
  for (std::int64_t row = 0; row < rows.count(); ++row)
    for (const std::int64_t column : rows.of(row)) {
      if (last[column] == row)
        throw Error(what + ": the pattern has element (" + std::to_string(row) + ", " + std::to_string(column) +
                    ") twice");
      last[column] = row;
    }
}

Adjacency::Adjacency(const std::vector<std::int64_t>& from, const std::vector<std::int64_t>& to, std::int64_t count)
    : begins_(static_cast<std::size_t>(count) + 1, 0), to_(to.size()) {
  for (const std::int64_t k : from) ++begins_[static_cast<std::size_t>(k) + 1];
  std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
  std::vector<std::size_t> next(begins_.begin(), begins_.end() - 1);
  for (std::size_t i = 0; i < from.size(); ++i) to_[next[from[i]]++] = to[i];
}

std::size_t Adjacency::most() const {
  std::size_t most = 0;
  for (std::int64_t k = 0; k < count(); ++k) most = std::max(most, of(k).size());
  return most;
}

std::int64_t colours_in(const std::vector<std::int64_t>& colours) {
  return colours.empty() ? 0 : *std::ranges::max_element(colours) + 1;
}

SparsityPattern symmetrised(const SparsityPattern& pattern) {
  std::vector<std::int64_t> rows = pattern.rows, columns = pattern.columns;
  rows.insert(rows.end(), pattern.columns.begin(), pattern.columns.end());
  columns.insert(columns.end(), pattern.rows.begin(), pattern.rows.end());
  // Goes through the elements column by column, so that `by_row` lists the columns of each row in ascending order.
  const Adjacency by_column(columns, rows, pattern.shape[0]);
  rows.clear();
  columns.clear();
  for (std::int64_t column = 0; column < by_column.count(); ++column)
    for (const std::int64_t row : by_column.of(column)) {
      rows.push_back(row);
      columns.push_back(column);
    }
  const Adjacency by_row(rows, columns, pattern.shape[0]);
  SparsityPattern both{pattern.shape, {}, {}};
  for (std::int64_t row = 0; row < by_row.count(); ++row)
    for (const std::int64_t column : by_row.of(row)) {
      if (!both.rows.empty() && both.rows.back() == row && both.columns.back() == column) continue;
      both.rows.push_back(row);
      both.columns.push_back(column);
    }
  return both;
}

std::vector<std::int64_t> colour_columns(const SparsityPattern& pattern) {
  check_pattern(pattern, "colour_columns");
  return coloured(Adjacency(pattern.columns, pattern.rows, pattern.shape[1]),
                  Adjacency(pattern.rows, pattern.columns, pattern.shape[0]));
}

std::vector<std::int64_t> colour_rows(const SparsityPattern& pattern) {
  check_pattern(pattern, "colour_rows");
  return coloured(Adjacency(pattern.rows, pattern.columns, pattern.shape[0]),
                  Adjacency(pattern.columns, pattern.rows, pattern.shape[1]));
}

std::vector<std::int64_t> colour_symmetric(const SparsityPattern& pattern) {
  check_pattern(pattern, "colour_symmetric");
  if (pattern.shape[0] != pattern.shape[1])
    throw ShapeError("colour_symmetric: the matrix must be square, got " + to_string(pattern.shape));
  const SparsityPattern both = symmetrised(pattern);
  return StarColouring(Adjacency(both.rows, both.columns, both.shape[0])).run();
}

}  // namespace xtape
