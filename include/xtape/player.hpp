/// Players: plan the computation of chosen values of a tape once, and play it any number of times without allocating.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "xtape/owner.hpp"
#include "xtape/precision.hpp"
#include "xtape/tape.hpp"
#include "xtape/trace.hpp"

namespace xtape {

/// What planning may do. Each pass can be switched off by itself. Results agree up to rounding whichever passes are on.
struct Passes {
  /// Applies the rules of the tape's op table (attention, layer_norm …); off: also expands what `grad` fused by them.
  bool fuse = true;
  bool fold = true;         ///< Computes small values that depend only on constants while planning.
  bool common = true;       ///< Computes equal calls on equal inputs once, except across bodies of checkpoints.
  bool accumulate = true;   ///< A call with Op::accumulate, such as a product, adds onto the other term of a sum.
  bool elementwise = true;  ///< Fuses elementwise ops of one shape, up to 64, to run tile by tile in cache.
  bool views = true;        ///< Views, concat and stack cost nothing where strides can express them; off: they copy.
  bool in_place = true;     ///< An op may overwrite an input that no later op reads.
  bool reuse = true;        ///< Buffers whose lifetimes do not overlap share memory.
  bool expand = false;      ///< Replaces every op that has an expansion by it; then `fuse` has no effect.
  bool unroll = true;       ///< With `expand`, replaces scans too, by all of their steps.
  /// Only `expand` and `unroll` on: slow, and the definition of the right results.
  static Passes reference();
  /// Each recorded call is computed by itself: without fuse, fold, common, accumulate and elementwise.
  static Passes unfused();
};

/// Memory for temporaries that several players share, one playing at a time. It reserves address space once, and uses
/// as much memory as the largest plan needs.
class Arena;
std::shared_ptr<Arena> make_arena();

/// Parameters in the forms in which products read them. Players that share it pack a parameter once, not at each play;
/// it takes as much memory as the parameters that such products read. Players of several threads may share it.
class PackedWeights;
std::shared_ptr<PackedWeights> make_packed_weights();
/// Makes later plays pack again. Must be called after parameters are written, while no player of `weights` plays.
void repack(PackedWeights& weights);

struct PlayerOptions {
  int threads = 0;                           ///< 0: omp_get_max_threads(). Results do not depend on it.
  std::uint64_t seed = 0;                    ///< Determines the numbers of all random ops.
  Precision precision = Precision::float32;  ///< For products of float32 arrays.
  Passes passes;
  std::vector<Carry> carries;                  ///< The states; those of caches are Tape::states().
  std::shared_ptr<Arena> arena;                ///< Null: the player has its own.
  std::shared_ptr<PackedWeights> packed = {};  ///< Null: products pack parameters at every play.
  /// The most bytes that the plan may take, Plan::peak_bytes; 0: any number. To keep to it, steps run again instead of
  /// keeping their results: as few as predictions say. Results have the same bits. The arena is never larger.
  std::size_t memory = 0;
  bool profile = false;                        ///< Measures the time of every step: see Player::seconds.
  std::shared_ptr<Trace> trace = {};           ///< Not null: records steps in it while it is on.
  bool digests = false;                        ///< Hashes every value of a play: see Player::digests.
};

/// The hash of a value of a play. Two runs are compared value by value without keeping arrays.
struct Digest {
  std::string node;     ///< "#12 add", named as Plan::Buffer; of a source its name.
  int output = 0;       ///< The index among the outputs of the step that computed it.
  std::string op;       ///< The step: "einsum", "add+gelu"; of a source "input", "carry" or "parameter".
  std::string site;
  std::string type;
  std::uint64_t hash = 0;
};

/// The array that is fed to an input. It is read during the play only. A temporary moves into the feed (see ArrayView);
/// a variable must live until the play.
struct Feed {
  Feed(const Var& input, ArrayView array) : var(input), values(std::move(array)) {}
  /// A number, as an array of the input's dtype. Throws DtypeError if that cannot hold it.
  template <class T, class = std::enable_if_t<std::is_arithmetic<T>::value>>
  Feed(const Var& input, T number, Caller caller = Caller::here()) : Feed(input, {Literal(number)}, {}, caller) {}
  /// The elements in row-major order, as an array of the input's type: play({{x, {1, 2, 3}}}). Throws DtypeError if its
  /// dtype cannot hold them, ShapeError for another number of elements.
  Feed(const Var& input, std::initializer_list<Literal> elements, Caller caller = Caller::here())
      : Feed(input, elements, input.shape(caller), caller) {}
  /// For everything else, which a program cannot feed.
  template <class T, class = std::enable_if_t<!std::is_arithmetic<T>::value && !std::is_convertible<T, ArrayView>::value>,
            class = void>
  Feed(const Var& /*input*/, const T& /*values*/) {
    static_assert(std::is_convertible<T, ArrayView>::value,
                  "feed an input with an Array, an xtensor array, a number, a list of numbers, or a std::vector or "
                  "std::span of float, double, int, int64_t or int8_t; std::vector<bool> has no array");
  }
  Var var;
  ArrayView values;

 private:
  Feed(const Var& input, std::initializer_list<Literal> elements, const Shape& shape, const Caller& caller);
};

/// A description of a plan: its steps, buffers and memory, for people. Known before anything is played.
struct Plan {
  /// One kernel or copy, in the order of playing.
  struct Step {
    std::string op;  ///< "einsum"; "add+gelu" for fused elementwise ops; "copy".
    std::string site;
    std::string outputs;  ///< Their types.
    std::string module;   ///< The path of its module: "h.0.attn"; empty outside definitions.
    double flops = 0;     ///< For products, also inside scans: 2 for each term of each sum.
    double bytes = 0;     ///< Read and written: each element of an operand or result once; in scans, at every step.
    double seconds = 0;   ///< Predicted from these two, with fixed constants: for comparing plans.
    bool again = false;   ///< Runs again because its results were not kept (PlayerOptions::memory).
  };
  struct Buffer {
    /// "#12 add": the index and op of the caller's node, as the tape prints it, even if other nodes replace it in the
    /// plan; or the name of an input or parameter.
    std::string name;
    std::string kind;  ///< "arena", "output", "constant", "parameter", "input", "carry".
    std::size_t bytes = 0;
    std::size_t offset = 0;  ///< In the arena, in bytes; else 0.
    int first = 0;           ///< The first step that uses it; -1: none.
    int last = 0;            ///< The last step that uses it.
  };
  /// A rule (op.hpp) that was applied, or a near miss: one that a single difference prevented.
  struct Fusion {
    std::string rule;
    std::string place;  ///< "#12 einsum", as buffers are named: the last of the calls that the fused call replaces.
    std::string site;   ///< The site of that call.
    std::string miss;   ///< Why the rule was not applied; empty if it was.
  };
  std::vector<Step> steps;
  std::vector<Buffer> buffers;
  std::vector<Fusion> fusions;
  std::size_t arena_bytes = 0;      ///< Temporaries and scratch; their lifetimes decide what shares memory.
  std::size_t scratch_bytes = 0;    ///< The largest scratch of a step, in the arena.
  std::size_t output_bytes = 0;     ///< Outputs and carries.
  std::size_t sum_bytes = 0;        ///< For Trainer::plan: partial sums of gradients.
  std::size_t constant_bytes = 0;   ///< Constants and the copies of fed inputs.
  std::size_t parameter_bytes = 0;  ///< Owned by stores, not by the player.
  std::size_t peak_bytes() const { return arena_bytes + output_bytes + sum_bytes + constant_bytes + parameter_bytes; }
};
std::ostream& operator<<(std::ostream& out, const Plan& plan);

/// The memory and the predicted time of a plan.
struct MemoryPoint {
  std::size_t bytes = 0;        ///< Plan::peak_bytes.
  std::size_t arena_bytes = 0;  ///< The part of `bytes` in the arena.
  double seconds = 0;           ///< The sum of Plan::Step::seconds.
  std::int64_t again = 0;       ///< How many steps run again.
};
/// What plans PlayerOptions::memory chooses from: the first one keeps every value, and each has less memory and more
/// time than the one before it. The last has the least memory that is possible. Allocates no memory for plans. Throws
/// as Player does.
std::vector<MemoryPoint> memory_curve(const Tape& tape, const Vars& outputs, const PlayerOptions& options = {});

/// A plan that cannot keep to PlayerOptions::memory.
class MemoryError : public Error {
 public:
  MemoryError(const std::string& message, std::size_t least) : Error(message), least_(least) {}
  /// The least possible bound in bytes: PlayerOptions::memory, or if a Trainer throws, TrainerOptions::memory.
  std::size_t least() const { return least_; }

 private:
  std::size_t least_;
};

/// Chosen outputs of a tape, compiled: what all players of one plan share, and nothing of it changes. A handle, cheap to
/// copy. It keeps the tape and the arrays of parameters alive; later growth of the tape does not affect it.
///
///   const Executable executable = compile(tape, {loss});
///   Player a(executable), b(executable);  // two threads may play them at once
///
/// Several threads may make players of it at once, while no thread records on the tape.
class Executable {
 public:
  Executable(const Executable&) = default;  // there is no moving: a handle always has its executable
  Executable& operator=(const Executable&) = default;
  /// The description of the plan, valid as long as the executable or a player of it. The first call makes it, which is
  /// slow and throws HandleError if an output has become stale.
  const Plan& plan() const;
  int threads() const;  ///< The most threads that a play uses.
  // What it was made from.
  const Tape& tape() const;
  const Vars& outputs() const;  ///< Then those of the carries.
  const PlayerOptions& options() const;

 private:
  friend class Player;
  friend Executable compile(const Tape& tape, const Vars& outputs, const PlayerOptions& options);
  struct Data;
  explicit Executable(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  std::shared_ptr<const Data> data_;
};
/// Plans what `outputs` and the carries of `options` need, and makes the kernels. Throws Error without outputs and
/// carries, for an input carried twice, for an op whose kernel is empty, or if the plan needs more memory than the
/// process can have (naming the op of the largest buffer); MemoryError if it needs more than PlayerOptions::memory;
/// HandleError for stale vars and vars of another tape; ShapeError if the types of a carry differ.
Executable compile(const Tape& tape, const Vars& outputs, const PlayerOptions& options = {});

/// Computes the outputs of an executable: it has the memory for one play at a time, the outputs and carries of the last
/// one, and a random step of its own. Every play reads parameters where they are, so they must not be written
/// meanwhile. For one thread at a time, while no thread records on the tape; players that share neither arenas, outputs
/// nor carries may play at once.
class Player {
 public:
  /// Throws Error if memory runs out (naming the op of the plan's largest buffer), and for memory of a carry that is
  /// also that of another carry or of a parameter. Players share the arena of PlayerOptions::arena and the states of
  /// Carry::memory if these are given.
  explicit Player(const Executable& executable);
  /// The only player of compile(tape, outputs, options). Throws as both do.
  Player(const Tape& tape, const Vars& outputs, const PlayerOptions& options = {});
  Player(Player&&) noexcept;  ///< Using the player that was moved from throws HandleError.
  Player& operator=(Player&&) noexcept;
  ~Player();

  /// Computes the outputs, without allocating. Needs one feed, of the input's shape and dtype, for each input that the
  /// outputs depend on, except carried ones; feeds of other inputs are ignored. Feeds are copied. With the same seed and
  /// `random_step`, random ops draw the same numbers. Without a step, a play takes the one after that of the last play,
  /// so that each draws its own.
  ///
  /// Throws DtypeError or ShapeError for a feed of another type, and Error for a feed that is missing, given twice or
  /// carried, before anything is computed. Errors in the values (an index out of range) are found while computing; they
  /// name the op and its site, and leave outputs and carried states unspecified.
  void play(std::initializer_list<Feed> feeds = {}, Caller caller = Caller::here()) {
    play(feeds.begin(), feeds.size(), step(), caller);
  }
  void play(std::initializer_list<Feed> feeds, std::uint64_t random_step, Caller caller = Caller::here()) {
    play(feeds.begin(), feeds.size(), random_step, caller);
  }
  void play(const std::vector<Feed>& feeds, Caller caller = Caller::here()) {
    play(feeds.data(), feeds.size(), step(), caller);
  }
  void play(const std::vector<Feed>& feeds, std::uint64_t random_step, Caller caller = Caller::here()) {
    play(feeds.data(), feeds.size(), random_step, caller);
  }
  void play(const Feed* feeds, std::size_t count, std::uint64_t random_step, Caller caller = Caller::here());
  /// The same, and calls after(i) after each step i of the plan, so that outputs can be used before the play ends (see
  /// final_steps). An exception that `after` throws ends the play.
  void play(const std::vector<Feed>& feeds, std::uint64_t random_step, const std::function<void(std::int64_t)>& after,
            Caller caller = Caller::here());
  std::uint64_t step() const;                ///< The random step of the next play without one; at first 0.
  void set_step(std::uint64_t random_step);  ///< Plays from here on draw again what they drew from there on.
  /// Per output, the step of the plan after which its value is final. Throws as `view` does for other vars.
  std::vector<std::int64_t> final_steps(const Vars& outputs) const;
  /// Makes later plays write `outputs` to `memory`, one array for each, of its type; views of earlier plays stay valid
  /// and unchanged. The player's own memory for them is freed. An output that shares its memory with another output or
  /// a carry stays where it is. Returns per output whether it has moved. Throws ShapeError or DtypeError for arrays of
  /// other types, Error for an output given twice, for an empty array and for memory that the player reads or writes
  /// elsewhere, and as `view` does; then nothing moves.
  std::vector<bool> move_outputs(const Vars& outputs, const std::vector<Array>& memory);

  /// An output of the last play: a dense view, valid until the next play or the end of the player. An output that is
  /// also carried may share the carry's memory. Throws Error before the first play and for vars that are not among the
  /// outputs.
  ArrayView view(const Var& output, Caller caller = Caller::here()) const;
  /// A copy of an output. Also throws DtypeError unless T is its element type.
  template <class T>
  typename XtensorOf<T>::type value(const Var& output, Caller caller = Caller::here()) const {
    return view(output, caller).to<T>();
  }
  /// An output as xtensor sees it, without a copy; valid as long as `view`. Throws as `value` does.
  template <class T>
  typename XtensorOf<const T>::view tensor(const Var& output, Caller caller = Caller::here()) const {
    return view(output, caller).tensor<T>();
  }
  /// The element of an output of one element (else ShapeError), of any dtype, as a double.
  double scalar(const Var& output, Caller caller = Caller::here()) const;
  /// The array of a carry: the value of `input` at the next play. Initially zeros, or Carry::memory; may be written
  /// between plays. Throws Error if `input` is not carried or no output depends on it.
  Array carried(const Var& input);

  const Executable& executable() const;
  const Plan& plan() const;  ///< Executable::plan.
  /// With PlayerOptions::profile, the seconds that each step of the plan took, summed over all plays; else empty.
  const std::vector<double>& seconds() const;
  std::int64_t measured() const;  ///< The number of plays measured.
  void forget_seconds();          ///< Resets both to 0.
  int threads() const;            ///< Executable::threads.
  /// With PlayerOptions::digests, the hashes of the last play: of the inputs, states and parameters that it read, then
  /// of the outputs of its kernels, in order. Views and copies have none. A hash depends on the bits of the elements
  /// in row-major order only: it is the checksum that save_arrays gives the array. Values inside fused steps have none:
  /// see Passes::unfused. Throws Error without the option.
  std::vector<Digest> digests() const;
  // What the executable was made from.
  const Tape& tape() const;
  const Vars& outputs() const;  ///< Then those of the carries.
  const PlayerOptions& options() const;

 private:
  struct Data;
  Owner<Data> data_;
};

/// The value of `var`, played once with Passes::reference() but without `unroll`, for exploring and debugging. Random
/// ops draw with seed and step 0. Throws as Player and Player::play do.
Array evaluate(const Var& var, const std::vector<Feed>& feeds = {}, Caller caller = Caller::here());
/// The same as an xtensor array. Also throws DtypeError unless T is the element type.
template <class T>
typename XtensorOf<T>::type value(const Var& var, const std::vector<Feed>& feeds = {},
                                  Caller caller = Caller::here()) {
  return evaluate(var, feeds, caller).to<T>();
}

}  // namespace xtape
