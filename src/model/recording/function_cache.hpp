/// A cache of recorded and planned functions of models.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "xtape/model.hpp"

namespace xtape {

/// Keeps the most recently used functions. `Notes` is additional data that the cache's user stores with each function.
template <class Notes = std::monostate>
class FunctionCache {
 public:
  struct Function : PlayableFunction {
    Notes notes;
  };
  /// A function to plan. The player computes `results` of `tape` and receives `carries` as an option.
  struct Recording {
    Tape tape;
    NamedVars inputs, results;
    Notes notes = {};
    std::vector<Carry> carries = {};
  };

  /// Keeps at most `capacity` functions, and at least one. All players receive `options`. If `make_room` is not empty,
  /// the cache calls it twice for a new function: before recording and planning, and again when the memory of the plan
  /// is known, before the function is added. `make_room` may drop functions.
  explicit FunctionCache(std::size_t capacity, PlayerOptions options = {}, std::function<void()> make_room = {})
      : capacity_(std::max<std::size_t>(1, capacity)), options_(std::move(options)), make_room_(std::move(make_room)) {}

  /// Returns the function of `key`, which becomes the most recently used one. If the cache lacks the function, plans
  /// the recording that `record(key)` returns. If the cache is full, evicts the least recently used function.
  template <class Record>
  const std::shared_ptr<Function>& of(const FunctionKey& key, const Record& record) {
    const auto found = std::ranges::find_if(kept_, [&](const auto& each) { return each->key == key; });
    if (found != kept_.end()) {
      kept_.splice(kept_.begin(), kept_, found);
      return kept_.front();
    }
    if (make_room_) make_room_();
    Recording made = record(key);
    Vars outputs;
    for (const auto& result : made.results) outputs.push_back(result.value);
    PlayerOptions options = options_;
    options.carries = std::move(made.carries);
    Player player(made.tape, outputs, options);
    if (make_room_) make_room_();
    ++planned_;
    kept_.push_front(std::make_shared<Function>(
        Function{{key, std::move(made.tape), std::move(made.inputs), std::move(made.results), std::move(player)},
                 std::move(made.notes)}));
    if (kept_.size() > capacity_) kept_.pop_back();
    return kept_.front();
  }

  void clear() { kept_.clear(); }
  /// Evicts the least recently used function. Returns whether there was one.
  bool drop() {
    if (kept_.empty()) return false;
    kept_.pop_back();
    return true;
  }
  std::int64_t planned() const { return planned_; }  ///< Returns how many functions have been planned so far.
  const PlayerOptions& options() const { return options_; }
  /// From now on, plans may take at most `memory` bytes (PlayerOptions::memory).
  void plan_within(std::size_t memory) { options_.memory = memory; }
  /// Iterates from the most to the least recently used function.
  auto begin() const { return kept_.begin(); }
  auto end() const { return kept_.end(); }

 private:
  std::size_t capacity_;
  PlayerOptions options_;
  std::function<void()> make_room_;
  std::int64_t planned_ = 0;
  std::list<std::shared_ptr<Function>> kept_;
};

}  // namespace xtape
