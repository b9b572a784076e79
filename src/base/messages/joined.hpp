/// Lists in messages.
#pragma once

#include <functional>
#include <span>
#include <string>

namespace xtape {

/// Returns "a, b, c": the texts of the elements of a list.
template <class List, class Text = std::identity>
std::string joined(const List& list, const Text& text = {}, const char* between = ", ") {
  std::string all;
  bool first = true;
  for (const auto& each : list) {
    if (!first) all += between;
    all += std::invoke(text, each);
    first = false;
  }
  return all;
}

/// "a, b, …": like joined, but at most the first `most` elements of a list.
template <class List>
std::string joined_first(const List& list, std::size_t most) {
  if (list.size() <= most) return joined(list);
  return joined(std::span(list).first(most)) + ", …";
}

}  // namespace xtape
