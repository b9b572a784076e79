/// Finds texts that are prefixes of a text.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace xtape {

/// A map from texts to non-negative numbers. It finds the entries with which a given text begins.
class Trie {
 public:
  static constexpr std::uint32_t root = 0;

  /// Adds an entry. An existing entry keeps its value.
  void add(std::string_view text, std::int32_t value) {
    std::uint32_t node = root;
    for (const char byte : text) {
      const auto [found, added] = nodes_.emplace(key_of(node, byte), static_cast<std::uint32_t>(values_.size()));
      if (added) values_.push_back(-1);
      node = found->second;
    }
    if (!text.empty()) begins_[static_cast<unsigned char>(text[0])] = true;
    if (values_[node] < 0) values_[node] = value;
  }
  /// Returns whether an entry begins with this byte.
  bool begins_with(char byte) const { return begins_[static_cast<unsigned char>(byte)]; }

  /// Calls visit(length, value) for each entry that begins at byte `at` of the text, shortest first.
  template <class Visit>
  void prefixes(std::string_view text, std::size_t at, const Visit& visit, std::uint32_t node = root) const {
    for (std::size_t end = at; end < text.size();) {
      const auto found = nodes_.find(key_of(node, text[end++]));
      if (found == nodes_.end()) return;
      node = found->second;
      if (values_[node] >= 0) visit(end - at, values_[node]);
    }
  }
  /// Returns the node of `text`, an argument for `prefixes`. From this node, `prefixes` finds the entries that begin
  /// with `text`, and matches only the rest of each entry. Returns -1 if no entry begins with `text`.
  std::int64_t node_of(std::string_view text) const {
    std::uint32_t node = root;
    for (const char byte : text) {
      const auto found = nodes_.find(key_of(node, byte));
      if (found == nodes_.end()) return -1;
      node = found->second;
    }
    return node;
  }

 private:
  struct Mix {
    std::size_t operator()(std::uint64_t key) const { return (key * 0x9E3779B97F4A7C15U) >> 20; }
  };
  static std::uint64_t key_of(std::uint32_t node, char byte) {
    return std::uint64_t{node} << 8 | static_cast<unsigned char>(byte);
  }

  std::unordered_map<std::uint64_t, std::uint32_t, Mix> nodes_;  // by node and next byte
  std::vector<std::int32_t> values_ = {-1};                      // by node: its value, or -1 if no entry ends there
  std::array<bool, 256> begins_{};
};

}  // namespace xtape
