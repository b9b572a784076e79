/// The data of a tape. Private to the tape layer; other layers use graph.hpp.
#pragma once

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "blocks.hpp"
#include "xtape/tape.hpp"

namespace xtape {

struct TapeData {
  static constexpr std::size_t no_enclosed = static_cast<std::size_t>(-1);

  Mode mode = Mode::train;
  Dtype default_dtype = Dtype::float32;
  const OpTable* ops = nullptr;  // null: the library's table
  Blocks<Node> nodes;
  std::vector<std::size_t> values_before{0};  // per node: the number of outputs of the nodes before it; then of all
  std::vector<ValueId> results;
  std::unordered_map<std::string, std::int32_t> inputs;          // by name
  std::unordered_map<const void*, std::int32_t> parameters;      // by the array's address
  std::unordered_map<std::uint64_t, std::int32_t> occurrences;   // by path, line and op
  std::vector<std::uint64_t> counted;                            // the keys of `occurrences`, in the order of counting
  std::vector<std::size_t> counted_before;                       // per node: the size of `counted` before it
  std::size_t enclosed_from = no_enclosed;                       // the same for the next node, after `enclose`
  Site site;                                                     // of the nodes being recorded
  bool site_is_fixed = false;                                    // new nodes get `site` unchanged and uncounted
  bool fused = false;                                            // new nodes are marked as fused
  std::int32_t tokens = -1;  // the node of the tokens whose rows have a past; -1: none
  std::int32_t past = -1;    // the node of the length of each row's past; -1: none
  std::int64_t capacity = 0;
  std::vector<std::pair<ValueId, ValueId>> states;  // (input, output)
  std::uint32_t next_serial = 1;
};

/// Appends a node that needs no checks, and sets its serial and, unless it has one, its site.
ValueId push(TapeData& data, Node&& node);

}  // namespace xtape
