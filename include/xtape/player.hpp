/// Playing a tape: plan once, play any number of times without an allocation.
#pragma once

#if defined(XTAPE_LAYER) && XTAPE_LAYER < 6
#error "this layer of xtape may not see the player layer"
#endif

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "xtape/tape.hpp"

namespace xtape {

/// What the planner may do. Each switch can be turned by itself; `reference()` has `expand` on and all others off: slow,
/// and what everything else must agree with.
struct Passes {
  /// Applies the rules of the tape's table: a call takes the place of calls that mean the same. Off, what `grad` has
  /// fused is expanded, too.
  bool fuse = true;
  bool fold = true;         ///< Small values that depend on constants alone are computed once, when planning.
  bool common = true;       ///< Equal calls on equal inputs are made once, but for those out of different bodies.
  bool accumulate = true;   ///< An op that can (`Op::accumulate`) adds its result onto the other term of a sum.
  bool elementwise = true;  ///< Elementwise ops of one shape are fused and run tile by tile, in cache.
  bool views = true;        ///< Reshapes, transposes and slices cost nothing, and parts are made in their whole, where
                            ///< strides can say it.
  bool in_place = true;     ///< An op that allows it writes over an input that nobody reads after it.
  bool reuse = true;        ///< Buffers whose lifetimes do not overlap share memory.
  bool expand = false;      ///< Replaces every op by its meaning in simpler ops, as far as that goes; no rule applies.
  static Passes reference();
};

/// Memory that several players use in turn: address space is reserved once and grows in place.
class Arena;
std::shared_ptr<Arena> make_arena();

/// Memory for outputs that several players give in turn: equal sizes share an array.
class OutputPool;
std::shared_ptr<OutputPool> make_output_pool();

struct PlayerOptions {
  int threads = 0;         ///< 0: as many as OpenMP would take.
  std::uint64_t seed = 0;  ///< Of all random ops.
  Passes passes;
  std::vector<Carry> carries;
  std::shared_ptr<Arena> arena;         ///< Null: an arena of its own.
  std::shared_ptr<OutputPool> outputs;  ///< With it, views are valid until the next play of any player that shares it.
  bool profile = false;                 ///< Measures every step: see Player::seconds.
};

/// What is fed to an input.
struct Feed {
  Feed(const Var& var, const ArrayView& values) : var(var), values(values) {}
  Var var;
  ArrayView values;
};

/// What a plan will do and hold, known before anything runs.
struct Plan {
  struct Step {
    std::string op;  ///< "einsum"; of fused elementwise ops all of them: "add+gelu".
    std::string site;
    std::string outputs;  ///< Types.
    std::string module;   ///< The path of the site's module: "h.0.attn"; empty outside definitions.
    double flops = 0;     ///< Of products (those inside a scan, too): 2 for each term of each sum.
    double bytes = 0;     ///< Read and written, every element of an operand or result once; of a scan, at every step.
  };
  struct Buffer {
    /// "#12 add", by the number and op of the printed tape, also where something else is played in place of this node
    /// or of a part of it; or the name of an input or parameter.
    std::string name;
    std::string kind;  ///< "arena", "output", "constant", "parameter", "input", "carry".
    std::size_t bytes = 0;
    std::size_t offset = 0;  ///< In the arena.
    int first = 0;           ///< The first step that writes it …
    int last = 0;            ///< … and the last that reads it.
  };
  /// A rule that was applied (xtape/op.hpp), or that would have been but for one thing.
  struct Fusion {
    std::string rule;
    std::string
        place;  ///< "#12 einsum", as buffers are named: what the fused call takes the place of, and what it needs.
    std::string site;  ///< Where that was recorded.
    std::string miss;  ///< Why the rule was not applied; empty where it was.
  };
  std::vector<Step> steps;
  std::vector<Buffer> buffers;
  std::vector<Fusion> fusions;
  std::size_t arena_bytes = 0;    ///< Temporaries and scratch, shared by lifetime.
  std::size_t scratch_bytes = 0;  ///< Of these, scratch.
  std::size_t output_bytes = 0;
  std::size_t constant_bytes = 0;
  std::size_t parameter_bytes = 0;  ///< Owned by stores.
  std::size_t peak_bytes() const { return arena_bytes + output_bytes + constant_bytes + parameter_bytes; }
};
std::ostream& operator<<(std::ostream& out, const Plan& plan);

/// A planned part of a tape, for chosen outputs. Later growth of the tape does not matter to it. It plays in one thread
/// at a time. Parameters are read where their store holds them, at every play.
class Player {
 public:
  Player(const Tape& tape, const Vars& outputs, const PlayerOptions& options = {});
  Player(Player&&) noexcept;
  Player& operator=(Player&&) noexcept;
  ~Player();

  /// Computes the outputs from the feeds: one for each input that the outputs need, with its shape and dtype, else
  /// Error. Errors of the values themselves (an index out of range) name the op and the place where it was recorded.
  /// `step` is the random step: equal steps draw equal numbers. Feeds are read only during the call.
  void play(std::initializer_list<Feed> feeds = {}, std::uint64_t step = 0) { play(feeds.begin(), feeds.size(), step); }
  void play(const std::vector<Feed>& feeds, std::uint64_t step = 0) { play(feeds.data(), feeds.size(), step); }
  void play(const Feed* feeds, std::size_t count, std::uint64_t step);

  /// An output of the last play. The view stays valid, and its elements unchanged, until the next play.
  ArrayView view(const Var& output) const;
  template <class T>
  xt::xarray<T> value(const Var& output) const {
    return view(output).to<T>();
  }
  /// The only element of an output of one element, of any dtype, as a double.
  double scalar(const Var& output) const;
  /// The state behind a carry's input: what the next play will start from. Zeros at first; may be written between
  /// plays.
  Array carried(const Var& input);

  const Plan& plan() const;
  /// With `profile`: the seconds that each step of the plan took, summed over all plays; else empty.
  const std::vector<double>& seconds() const;
  std::int64_t measured() const;  ///< How many plays those are.
  void forget_seconds();          ///< Begins to measure anew.
  int threads() const;
  /// Names the first node whose output holds a NaN or infinity when played on `feeds` again, from the carried states as
  /// they are now, with its site; empty if none. Slow (plays without reuse): for finding out why a loss is not finite.
  std::string first_not_finite(const std::vector<Feed>& feeds, std::uint64_t step = 0) const;

 private:
  struct Data;
  std::unique_ptr<Data> data_;
};

/// Plays what `var` needs, once, by the reference path: for exploring and debugging. Random ops draw for step 0.
Array evaluate(const Var& var, const std::vector<Feed>& feeds = {});
template <class T>
xt::xarray<T> value(const Var& var, const std::vector<Feed>& feeds = {}) {
  return evaluate(var, feeds).to<T>();
}

}  // namespace xtape
