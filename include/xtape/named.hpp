/// Values by name: what arrays, vars and sizes are handed over by.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "xtape/error.hpp"

namespace xtape {

/// Throws Error: there is no `name` among `names`, and which of them is nearest.
[[noreturn]] void throw_no_such_name(const std::string& name, const std::vector<std::string>& names);

/// Values by name, in the order of adding. Finding one takes logarithmic time.
template <class T>
class Named {
 public:
  struct Entry {
    std::string name;
    T value;
  };

  Named() = default;
  Named(std::initializer_list<Entry> entries) {
    for (const Entry& entry : entries) add(entry.name, entry.value);
  }
  /// Of values that convert: arrays as views of them.
  template <class U>
  Named(const Named<U>& other) {
    for (const auto& entry : other) add(entry.name, entry.value);
  }

  /// Adds a value. Throws Error where the name is taken.
  T& add(const std::string& name, T value) {
    const auto place = place_of(name);
    if (is_at(place, name)) throw Error("there are two values of the name '" + name + "'");
    by_name_.insert(place, static_cast<std::uint32_t>(entries_.size()));
    entries_.push_back({name, std::move(value)});
    return entries_.back().value;
  }
  /// Adds a value, or takes it in place of the one of that name.
  void set(const std::string& name, T value) {
    const auto place = place_of(name);
    if (is_at(place, name))
      entries_[*place].value = std::move(value);
    else
      add(name, std::move(value));
  }

  /// Null where there is none of that name.
  const T* find(const std::string& name) const {
    const auto place = place_of(name);
    return is_at(place, name) ? &entries_[*place].value : nullptr;
  }
  bool has(const std::string& name) const { return find(name) != nullptr; }
  /// The value, of arrays a handle on the same memory. Throws Error, with the nearest name, where there is none.
  T at(const std::string& name) const {
    if (const T* found = find(name)) return *found;
    throw_no_such_name(name, names());
  }

  std::size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  const Entry& operator[](std::size_t index) const { return entries_[index]; }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const Entry& entry : entries_) names.push_back(entry.name);
    return names;
  }

  /// The same values by the same names, in any order.
  friend bool operator==(const Named& a, const Named& b) {
    return std::equal(a.by_name_.begin(), a.by_name_.end(), b.by_name_.begin(), b.by_name_.end(),
                      [&](std::uint32_t i, std::uint32_t j) {
                        return a.entries_[i].name == b.entries_[j].name && a.entries_[i].value == b.entries_[j].value;
                      });
  }
  friend bool operator!=(const Named& a, const Named& b) { return !(a == b); }

 private:
  std::vector<std::uint32_t>::const_iterator place_of(const std::string& name) const {
    return std::lower_bound(by_name_.begin(), by_name_.end(), name,
                            [&](std::uint32_t i, const std::string& sought) { return entries_[i].name < sought; });
  }
  bool is_at(std::vector<std::uint32_t>::const_iterator place, const std::string& name) const {
    return place != by_name_.end() && entries_[*place].name == name;
  }

  std::vector<Entry> entries_;
  std::vector<std::uint32_t> by_name_;  // places among the entries, in the order of names
};

}  // namespace xtape
