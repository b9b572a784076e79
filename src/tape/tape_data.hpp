/// The data of a tape. Private to the tape layer; other layers use graph.hpp.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "xtape/tape.hpp"

namespace xtape {

// A list that grows and shrinks at its end and never moves its elements.

/// Use it instead of std::deque, because GCC's std::deque allocates each element separately if elements have more than
/// 256 bytes.
template <class T, std::size_t together = 8>
class Blocks {
 public:
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return blocks_[i / together][i % together]; }
  const T& operator[](std::size_t i) const { return blocks_[i / together][i % together]; }
  T& back() { return (*this)[size_ - 1]; }

  template <class Element>
  void push_back(Element&& element) {
    if (size_ / together == blocks_.size()) blocks_.emplace_back().reserve(together);
    blocks_[size_ / together].push_back(std::forward<Element>(element));
    ++size_;
  }
  void pop_back() { blocks_[--size_ / together].pop_back(); }

 private:
  std::vector<std::vector<T>> blocks_;  // blocks of `together` elements each, whose memory is reserved
  std::size_t size_ = 0;
};

/// Where vars find their tape. A place outlives its tape and is used again for another one, so vars compare its number.
struct TapePlace {
  std::atomic<std::uint32_t> number{1};  // each tape that is destroyed increments it
  TapeData* tape = nullptr;
  TapePlace* next_free = nullptr;
};

struct TapeData : std::enable_shared_from_this<TapeData> {
  TapeData();
  ~TapeData();
  TapeData(const TapeData&) = delete;
  TapeData& operator=(const TapeData&) = delete;

  static constexpr std::size_t no_enclosed = static_cast<std::size_t>(-1);

  TapePlace& place;
  Mode mode = Mode::train;
  Dtype default_dtype = Dtype::float32;
  const OpTable* ops = nullptr;  // null stands for the library's table
  Blocks<Node> nodes;
  // per node: the number of outputs of all earlier nodes; at the end: the number of all outputs
  std::vector<std::size_t> values_before{0};
  std::vector<ValueId> results;
  std::unordered_map<std::string, std::int32_t> inputs;         // by name
  std::unordered_map<const void*, std::int32_t> parameters;     // by the array's address
  std::unordered_map<std::uint64_t, std::int32_t> occurrences;  // by path, line and op
  std::vector<std::uint64_t> counted;       // the keys added to `occurrences`, in the order of counting
  std::vector<std::size_t> counted_before;  // per node: the size of `counted` before it
  std::size_t enclosed_from = no_enclosed;  // counted_before of the next node, set by `enclose`
  Site site;                                // of the nodes being recorded
  bool site_is_fixed = false;               // new nodes get `site` unchanged and uncounted
  bool fused = false;                       // new nodes are marked as fused
  std::int32_t tokens = -1;                 // the node of the tokens whose rows have a past; -1: none
  std::int32_t past = -1;                   // the node of the length of each row's past; -1: none
  std::int64_t capacity = 0;
  Dtype caches = Dtype::float32;                    // how caches store floats
  std::vector<std::pair<ValueId, ValueId>> states;  // (input, output)
  std::uint32_t next_serial = 1;
};

/// Returns the site of the next call of `op`: the current scope and line, and the number of earlier calls of `op` at
/// this place. Counts this call.
Site next_site(TapeData& data, const Op& op);

/// Removes the nodes from index `size` on, and all references to these nodes.
void drop_nodes(TapeData& data, std::size_t size);

/// Returns how many sites were counted before node `size`. If `enclose` replaced the nodes from `size` on, returns how
/// many were counted before the replaced nodes.
std::size_t counted_at(const TapeData& data, std::size_t size);

/// Appends a node without checks. Sets its serial number, and its site if the node has none.
ValueId push(TapeData& data, Node&& node);
/// Does what `push` does after it has appended the node.
ValueId complete_last(TapeData& data);

}  // namespace xtape
