/// Functions of models that are recorded and planned, kept for the next time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "xtape/model.hpp"

namespace xtape {

/// Keeps the most recently used functions. `Notes` is what their users need to know of them besides.
template <class Notes = std::monostate>
class FunctionCache {
 public:
  struct Function : PlayableFunction {
    Notes notes;
  };
  /// What is to be played: the results of `tape`, and the states that its player is given memory for.
  struct Recording {
    Tape tape;
    NamedVars inputs, results;
    Notes notes = {};
    std::vector<Carry> carries = {};
  };

  /// Keeps as many as `capacity`, at least one. All are played with these options.
  explicit FunctionCache(std::size_t capacity, PlayerOptions options = {})
      : capacity_(std::max<std::size_t>(1, capacity)), options_(std::move(options)) {}

  /// The function of that key, now the most recently used. Where there is none, `record(key)` gives its recording, and
  /// the least recently used one falls out if there is no room.
  template <class Record>
  const std::shared_ptr<Function>& of(const FunctionKey& key, const Record& record) {
    const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const auto& each) { return each->key == key; });
    if (found != kept_.end()) {
      kept_.splice(kept_.begin(), kept_, found);
      return kept_.front();
    }
    Recording made = record(key);
    Vars outputs;
    for (const auto& result : made.results) outputs.push_back(result.value);
    PlayerOptions options = options_;
    options.carries = std::move(made.carries);
    Player player(made.tape, outputs, options);
    ++planned_;
    kept_.push_front(std::make_shared<Function>(
        Function{{key, std::move(made.tape), std::move(made.inputs), std::move(made.results), std::move(player)},
                 std::move(made.notes)}));
    if (kept_.size() > capacity_) kept_.pop_back();
    return kept_.front();
  }

  void clear() { kept_.clear(); }
  std::int64_t planned() const { return planned_; }  ///< How many functions were planned so far.
  const PlayerOptions& options() const { return options_; }
  /// The most recently used first.
  auto begin() const { return kept_.begin(); }
  auto end() const { return kept_.end(); }

 private:
  std::size_t capacity_;
  PlayerOptions options_;
  std::int64_t planned_ = 0;
  std::list<std::shared_ptr<Function>> kept_;
};

}  // namespace xtape
