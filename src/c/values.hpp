/// Arrays, vars and options, as the C interface passes them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "c/handles.hpp"
#include "tape/calls.hpp"
#include "train/recipe/key_spec.hpp"
#include "xtape/player.hpp"
#include "xtape/tape.hpp"

namespace xtape::c {

/// Throws DtypeError if the number is none of the enumeration.
Dtype dtype_of(xtape_dtype dtype);
/// Throws Error if the rank is negative or `shape` is null, ShapeError if no array has this shape.
Shape shape_of(std::int32_t rank, const std::int64_t* shape, Dtype dtype);
/// The elements of a view. Throws Error if `data` is null although there are elements, or is not aligned.
ArrayView array_view(const xtape_view& view, const char* argument);
/// Describes a view. It points into `view`, whose layout must outlive it.
xtape_view described(const ArrayView& view);
Json json_of_type(Dtype dtype, const Shape& shape);

/// An array of the interface: elements, and what keeps them alive.
class ArrayObject : public Object {
 public:
  static constexpr const char* word = "an array";
  explicit ArrayObject(Array array);
  ArrayObject(const ArrayView& view, std::shared_ptr<void> owner, bool writable);
  Json describe() const override;
  /// The array for a store. Throws Error if the elements cannot be written, have gaps or are not aligned.
  Array as_weight() const;

  const ArrayView view;
  const std::shared_ptr<void> owner;
  const bool writable;
};

class StoreObject : public Object {
 public:
  static constexpr const char* word = "a store";
  explicit StoreObject(const Store& store) : Object(word), arrays(store) {}
  Json describe() const override;

  Store arrays;
};

class TapeObject : public Object {
 public:
  static constexpr const char* word = "a tape";
  explicit TapeObject(const Tape& tape, NamedVars outputs = {});
  Json describe() const override;

  // Vars.
  xtape_var from(const Var& var) const;
  /// Throws HandleError if the var is of another tape, stale, empty or a number.
  Var var(const xtape_var& var, const char* argument) const;
  Vars vars(const xtape_var* vars, std::size_t count, const char* argument) const;
  /// Vars with names.
  NamedVars named(const char* const* names, const xtape_var* vars, std::size_t count) const;
  /// The input, parameter or saved output of this name. Throws Error with the nearest name.
  Var named(const std::string& name) const;
  /// A var, or a number.
  Operand operand(const xtape_var& var) const;

  /// Runs `record` and writes its results. After an error, nothing stays recorded. Throws Error if there is no room.
  template <class Record>
  void record(const Record& record, xtape_var* results, std::size_t capacity, std::size_t* count) {
    require_list(results, capacity, "results");
    const Rollback rollback(tape);
    write(record(), results, capacity, count);
  }

  Tape tape;
  const NamedVars outputs;  ///< Those of a tape from a file.

 private:
  void write(const Vars& vars, xtape_var* results, std::size_t capacity, std::size_t* count) const;
  const std::uint32_t number_;
};

/// Feeds of a play.
std::vector<Feed>& feeds_of(const TapeObject& tape, const xtape_var* inputs, const xtape_view* values,
                            std::size_t count, std::vector<Feed>& feeds);

// Options.

/// Options that are read key by key, as a section of a recipe: unknown keys and wrong values are errors.
class Options {
 public:
  explicit Options(const char* text)
      : node_(json_object(text, "options")), section_(node_.json(), node_, no_settings) {}
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;
  train::Section* operator->() { return &section_; }
  train::Section& section() { return section_; }
  /// Reads a name of an enumeration that `named` knows.
  template <class Target, class Named>
  void read_named(const char* key, Target& target, const Named& named) {
    std::string name;
    section_.read(key, name);
    if (!section_.has(key)) return;
    try {
      target = named(name);
    } catch (const Error& error) {
      section_.fail(key, std::string("is wrong: ") + error.what());
    }
  }
  void done() const { section_.done(); }

 private:
  static inline const std::vector<Setting> no_settings = {};
  JsonNode node_;
  train::Section section_;
};
void read_player_options(Options& options, PlayerOptions& player);

}  // namespace xtape::c
