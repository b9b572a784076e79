/// An ordered map from names to values, used to pass arrays, vars and sizes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "xtape/error.hpp"

namespace xtape {

/// The word for a value of type T in error messages: "array", "var", "size".
template <class T>
inline constexpr const char* kind_of_value = "value";

/// Throws an Error with the message that `name` is not one of `names`. The message suggests the nearest name.
[[noreturn]] void throw_no_such_name(const char* kind, const std::string& name, const std::vector<std::string>& names);

/// Values by name, in insertion order. Insertion and lookup take logarithmic time. Insertion invalidates references to
/// entries, iterators, and pointers from `find`.
template <class T>
class Named {
 public:
  struct Entry {
    std::string name;
    T value;
  };

  Named() = default;
  /// Throws Error if a name occurs twice.
  Named(std::initializer_list<Entry> entries) {
    for (const Entry& entry : entries) add(entry.name, T(entry.value));
  }
  /// Converts each value to T. If T is ArrayView and `other` is an lvalue, the views do not keep its arrays alive. If
  /// `other` is a temporary, the views own its arrays.
  template <class U, class = std::enable_if_t<std::is_convertible<const U&, T>::value>>
  Named(const Named<U>& other) {  // NOLINT: converts by intent
    for (const auto& entry : other) add(entry.name, T(entry.value));
  }
  template <class U, class = std::enable_if_t<std::is_convertible<U, T>::value && !std::is_same<U, T>::value>>
  Named(Named<U>&& other) {  // NOLINT: converts by intent
    for (auto& entry : other.entries_) add(entry.name, std::move(entry.value));
  }

  /// Adds a value and returns it. Throws Error if the name already exists.
  T& add(const std::string& name, T value) {
    const auto [place, fresh] = index_.emplace(name, entries_.size());
    if (!fresh) throw Error(std::string(kind_of_value<T>) + " '" + name + "' already exists");
    try {
      entries_.push_back({name, std::move(value)});
    } catch (...) {
      index_.erase(place);
      throw;
    }
    return entries_.back().value;
  }
  /// Adds a value, or replaces the value with the same name.
  void set(const std::string& name, T value) {
    if (const auto found = index_.find(name); found != index_.end())
      entries_[found->second].value = std::move(value);
    else
      add(name, std::move(value));
  }

  /// Returns null if there is no such name.
  const T* find(const std::string& name) const {
    const auto found = index_.find(name);
    return found == index_.end() ? nullptr : &entries_[found->second].value;
  }
  bool has(const std::string& name) const { return find(name) != nullptr; }
  /// Returns the value of this name. Throws Error with the nearest name if there is no such name.
  const T& at(const std::string& name) const& {
    if (const T* found = find(name)) return *found;
    throw_no_such_name(kind_of_value<T>, name, names());
  }
  T& at(const std::string& name) & { return const_cast<T&>(std::as_const(*this).at(name)); }
  T at(const std::string& name) && { return std::move(at(name)); }

  std::size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  /// Returns an entry in insertion order. Throws Error if the index is out of range.
  const Entry& operator[](std::size_t index) const& {
    if (index >= entries_.size())
      throw Error("there is no " + std::string(kind_of_value<T>) + " " + std::to_string(index) + ": the list has " +
                  std::to_string(entries_.size()));
    return entries_[index];
  }
  Entry operator[](std::size_t index) && { return std::move(const_cast<Entry&>(std::as_const(*this)[index])); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const Entry& entry : entries_) names.push_back(entry.name);
    return names;
  }

  /// Whether both have the same names with equal values, in any order.
  friend bool operator==(const Named& a, const Named& b) {
    return a.size() == b.size() &&
           std::equal(a.index_.begin(), a.index_.end(), b.index_.begin(), [&](const auto& x, const auto& y) {
             return x.first == y.first && a.entries_[x.second].value == b.entries_[y.second].value;
           });
  }
  friend bool operator!=(const Named& a, const Named& b) { return !(a == b); }

 private:
  template <class U>
  friend class Named;

  std::vector<Entry> entries_;
  std::map<std::string, std::size_t> index_;  // name -> index in entries_
};

}  // namespace xtape
