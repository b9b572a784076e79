/// Tables of the keys of recipes. Reading, checks, errors, pages, and what may change in a run come from them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "train/recipe/section.hpp"

namespace xtape::train {

/// What is said of a key. The texts are Markdown.
struct KeySpec {
  std::string name;
  std::string values;   ///< The values that the key may have: "integer, at least 1".
  std::string initial;  ///< The default, or "" if there is none.
  std::string doc;      ///< A phrase. Empty for keys that only the program writes.
  bool required = false;
  enum class Paths : std::uint8_t { none, one, files } paths = Paths::none;  ///< `files` are those of the data.
  /// Why a run keeps the value when it continues, or "" if the value may change. Empty if the section decides.
  std::optional<std::string> kept = {};
};

/// A property of a key, after its doc and its limits.
using Trait = std::function<void(KeySpec&)>;
inline const Trait needed = [](KeySpec& key) { key.required = true; };
inline const Trait a_path = [](KeySpec& key) { key.paths = KeySpec::Paths::one; };
inline const Trait of_data_files = [](KeySpec& key) { key.paths = KeySpec::Paths::files; };
inline const Trait may_change = [](KeySpec& key) { key.kept = ""; };
inline Trait keeps(const std::string& why) {
  return [why](KeySpec& key) { key.kept = why; };
}
inline Trait otherwise(const std::string& initial) {
  return [initial](KeySpec& key) { key.initial = initial; };
}

using Names = std::vector<std::string>;

// Set `values` and `initial` of a key that Section::read reads into such a variable, with such limits.

inline void describe(KeySpec& key, const std::string&) {
  key.values = "string";
}
inline void describe(KeySpec& key, const std::vector<std::string>&) {
  key.values = "list of strings, or one string";
}
void describe(KeySpec& key, bool initial);
void describe(KeySpec& key, double initial, const Bounds& bounds = {});
void describe(KeySpec& key, std::int64_t initial, Range range = {});
inline void describe(KeySpec& key, std::uint64_t initial) {
  describe(key, static_cast<std::int64_t>(initial));
}
void describe(KeySpec& key, const std::string& initial, const Names& names);
template <class Enumeration>
void describe(KeySpec& key, Enumeration initial, const Names& names) {
  describe(key, names[static_cast<std::size_t>(initial)], names);
}

/// A key whose value is read into a Target, such as SearchOptions.
template <class Target>
struct Key : KeySpec {
  using Read = std::function<void(Section&, const std::string& name, Target&)>;

  /// The value goes to a member of the target, which also says its type and default.
  template <class Member, class... Traits>
  requires(std::is_invocable_v<Member, Target&> && (std::is_convertible_v<Traits, Trait> && ...))
      Key(const char* name, Member member, const char* doc, const Traits&... traits)
      : KeySpec{name, "", "", doc}, read([member](Section& section, const std::string& key, Target& target) {
          section.read(key, std::invoke(member, target));
        }) {
    Target target;
    describe(*this, std::invoke(member, target));
    (Trait(traits)(*this), ...);
  }
  /// The same, with the limits of Section::read: Range, Bounds or Names.
  template <class Member, class Limits, class... Traits>
  requires(std::is_invocable_v<Member, Target&> && !std::is_convertible_v<Limits, Trait>)
      Key(const char* name, Member member, const char* doc, const Limits& limits, const Traits&... traits)
      : KeySpec{name, "", "", doc}, read([member, limits](Section& section, const std::string& key, Target& target) {
          section.read(key, std::invoke(member, target), limits);
        }) {
    Target target;
    describe(*this, std::invoke(member, target), limits);
    (Trait(traits)(*this), ...);
  }
  /// A function reads the value.
  template <class... Traits>
  Key(const char* name, const char* values, const char* initial, const char* doc, Read read, const Traits&... traits)
      : KeySpec{name, values, initial, doc}, read(std::move(read)) {
    (Trait(traits)(*this), ...);
  }

  Read read;
};

/// Keys that all targets have, or only some. The docs of those begin with `whose`.
template <class Target>
struct KeyGroup {
  std::vector<Key<Target>> keys;
  const char* whose = nullptr;
  std::function<bool(const Target&)> applies = nullptr;
};

template <class Target>
using Keys = std::vector<KeyGroup<Target>>;

/// A member of a member of the target.
template <class Outer, class Inner>
auto part(Outer outer, Inner inner) {
  return [=](auto& target) -> auto& {
    return std::invoke(inner, std::invoke(outer, target));
  };
}

/// Reads the keys of a table in its order. Fails if a required key is missing.
template <class Target>
void read_keys(Section& section, const Keys<Target>& groups, Target& target) {
  for (const KeyGroup<Target>& group : groups) {
    if (group.applies && !group.applies(target)) continue;
    for (const Key<Target>& key : group.keys)
      if (key.required) section.need({key.name});
    for (const Key<Target>& key : group.keys) key.read(section, key.name, target);
  }
}

/// Reads a whole section.
template <class Target>
void read_section(Section section, const Keys<Target>& keys, Target& target) {
  read_keys(section, keys, target);
  section.done();
}

/// The keys of a section, or those that a kind of data adds to the section `data`.
struct KeyTable {
  template <class Target>
  KeyTable(std::string section, const Keys<Target>& groups) : section(std::move(section)) {
    for (const KeyGroup<Target>& group : groups)
      for (KeySpec key : group.keys) {
        if (group.whose != nullptr) key.doc = std::string(group.whose) + ": " + key.doc;
        keys.push_back(std::move(key));
      }
  }
  /// "optimizer.kind"
  std::string dotted(const KeySpec& key) const {
    return (section.empty() ? "" : section.substr(0, section.find(' ')) + ".") + key.name;
  }
  std::string section;  ///< "" for the whole recipe; "data of kind images".
  std::vector<KeySpec> keys;
};
/// The tables of all sections, in the order in which recipes are read.
const std::vector<KeyTable>& key_tables();
/// Returns why a run that continues cannot change a key, or "" if it can. Unknown keys can; reading refuses them.
std::string why_kept(std::string key);
/// Writes the tables as Markdown, each under its section.
void write_keys(std::ostream& out);

}  // namespace xtape::train
