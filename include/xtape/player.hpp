/// Players plan the computation of chosen values of a tape once, and play it any number of times without allocating.
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

/// The passes of planning. Each pass can be switched off by itself. Results agree up to rounding for all combinations.
struct Passes {
  /// Applies the fusion rules of the tape's op table (attention, layer_norm …). If off, also expands the ops that
  /// `grad` fused.
  bool fuse = true;
  bool fold = true;    ///< Computes small values that depend only on constants at planning time.
  bool common = true;  ///< Computes equal calls on equal inputs only once, except across bodies of checkpoints.
  /// A call with Op::accumulate, such as a matrix product, adds its result in place to the other term of a sum.
  bool accumulate = true;
  bool elementwise = true;  ///< Fuses up to 64 elementwise ops of one shape, which then run tile by tile in cache.
  bool views = true;        ///< Views, concat and stack copy nothing if strides can express them. If off, they copy.
  bool in_place = true;     ///< An op may overwrite an input that no later op reads.
  bool reuse = true;        ///< Buffers whose lifetimes do not overlap share memory.
  bool expand = false;      ///< Replaces every op by its expansion if it has one. `fuse` then has no effect.
  bool unroll = true;       ///< With `expand`, also replaces each scan by all of its steps.
  /// Only `expand` and `unroll` are on. Slow. These passes define the correct results.
  static Passes reference();
  /// Computes each recorded call separately: without fuse, fold, common, accumulate and elementwise.
  static Passes unfused();
};

/// Memory that several players share for their temporaries. Only one of these players may play at a time. The arena
/// reserves address space once, and uses as much memory as the largest plan needs.
class Arena;
/// Makes an arena for players that share it (PlayerOptions::arena). It takes no memory until a plan needs it.
std::shared_ptr<Arena> make_arena();

/// Parameters in the packed layout that matrix products read. If players share these packed weights, each parameter is
/// packed only once, not at each play. The packed copy takes as much memory as the parameters that matrix products
/// read. Players of several threads may share packed weights.
class PackedWeights;
/// Makes an object for players that share packed weights (PlayerOptions::packed). It is empty until a player packs.
std::shared_ptr<PackedWeights> make_packed_weights();
/// Makes later plays pack again. Call it after parameters are written, while no player of `weights` plays.
void repack(PackedWeights& weights);

struct PlayerOptions {
  /// 0 means OMP_NUM_THREADS or, without it, one thread for each core that the process can use. Results do not depend
  /// on the number of threads.
  int threads = 0;
  std::uint64_t seed = 0;                    ///< Determines the numbers of all random ops.
  Precision precision = Precision::float32;  ///< The precision of products of float32 arrays.
  Bits bits = Bits::usual;                   ///< Whether results have the same bits on every processor.
  /// How a Predictor stores what the op `cache` keeps: float32, as computed, or q8_0, in a quarter of the memory. Then
  /// floats whose last axis is whole blocks are rounded to 8 bits. Other players do not read this option.
  Dtype caches = Dtype::float32;
  Passes passes = {};
  std::vector<Carry> carries = {};             ///< The carried states. Tape::states() returns those of caches.
  std::shared_ptr<Arena> arena = {};           ///< Null: the player has its own arena.
  std::shared_ptr<PackedWeights> packed = {};  ///< Null: products pack parameters at every play.
  /// The most bytes of the plan (Plan::peak_bytes). 0 means no limit. To stay below the limit, the plan recomputes
  /// results instead of keeping them, with as little recomputation as the predicted times allow. The bits of results do
  /// not change. The arena never exceeds this limit.
  std::size_t memory = 0;
  bool profile = false;               ///< Whether to measure the time of every step (Player::seconds).
  std::shared_ptr<Trace> trace = {};  ///< If not null, records steps in this trace while the trace is on.
  bool digests = false;               ///< Whether to hash every value of a play (Player::digests).
};

/// The hash of a value of a play. Digests compare two runs value by value without keeping arrays.
struct Digest {
  std::string node;  ///< "#12 add", as in Plan::Buffer::name. For a source, its name.
  int output = 0;    ///< The index among the outputs of the step.
  std::string op;    ///< The step: "einsum", "add+gelu". For a source: "input", "carry" or "parameter".
  std::string site;
  std::string type;
  std::uint64_t hash = 0;
};

/// An array for an input. Player::play reads the array. A feed made from a temporary owns the temporary (see
/// ArrayView). A feed made from a variable does not own the variable, which must live until the play.
struct Feed {
  Feed(const Var& input, ArrayView array) : var(input), values(std::move(array)) {}
  /// Feeds a number, as an array of the input's dtype. Throws DtypeError if the dtype cannot hold the number.
  template <class T, class = std::enable_if_t<std::is_arithmetic<T>::value>>
  Feed(const Var& input, T number, Caller caller = Caller::here()) : Feed(input, {Literal(number)}, {}, caller) {}
  /// Feeds elements in row-major order, as an array of the input's type: play({{x, {1, 2, 3}}}). Throws DtypeError if
  /// the dtype cannot hold an element, ShapeError if the number of elements is wrong.
  Feed(const Var& input, std::initializer_list<Literal> elements, Caller caller = Caller::here())
      : Feed(input, elements, input.shape(caller), caller) {}
  /// Rejects all other types at compile time.
  template <class T,
            class = std::enable_if_t<!std::is_arithmetic<T>::value && !std::is_convertible<T, ArrayView>::value>,
            class = void>
  Feed(const Var& /*input*/, const T& /*values*/) {
    static_assert(std::is_convertible<T, ArrayView>::value,
                  "feed an input with an Array, an xtensor array, a vector or matrix of Eigen (of an expression its "
                  "eval()), a number, a list of numbers, or a std::vector or std::span of float, double, int, int64_t "
                  "or int8_t; std::vector<bool> has no array");
  }
  Var var;
  ArrayView values;

 private:
  Feed(const Var& input, std::initializer_list<Literal> elements, const Shape& shape, const Caller& caller);
};

/// A readable description of a plan: its steps, buffers and memory. Available before the first play.
struct Plan {
  /// One kernel or copy, in the order of playing.
  struct Step {
    std::string op;  ///< "einsum"; "add+gelu" for fused elementwise ops; "copy".
    std::string site;
    std::string outputs;  ///< The types of the outputs.
    std::string module;   ///< Scope::path: "h.0.attn".
    double flops = 0;     ///< For matrix products, also inside scans: 2 for each term of each sum.
    /// Bytes read and written. Each element of an operand or result counts once; in scans, once per step.
    double bytes = 0;
    double seconds = 0;  ///< Predicted from `flops` and `bytes` with fixed constants, to compare plans.
    bool again = false;  ///< Whether the step recomputes results that were not kept (PlayerOptions::memory).
  };
  struct Buffer {
    /// "#12 add": the index and op of the node that the tape prints, even if the plan replaces this node by others. For
    /// an input or parameter, its name.
    std::string name;
    std::string kind;  ///< "arena", "output", "constant", "parameter", "input", "carry".
    std::size_t bytes = 0;
    std::size_t offset = 0;  ///< In the arena, in bytes. Otherwise 0.
    int first = 0;           ///< The first step that uses the buffer. -1: none.
    int last = 0;            ///< The last step that uses the buffer.
  };
  /// A fusion rule (op.hpp) that was applied, or a near miss: a rule that only a single difference prevented.
  struct Fusion {
    std::string rule;
    std::string place;  ///< "#12 einsum", as in Buffer::name: the last of the calls that the fused call replaces.
    std::string site;   ///< The site of this last call.
    std::string miss;   ///< The reason if the rule was not applied. Otherwise empty.
  };
  std::vector<Step> steps;
  std::vector<Buffer> buffers;
  std::vector<Fusion> fusions;
  std::size_t arena_bytes = 0;      ///< Temporaries and scratch. Buffers whose lifetimes do not overlap share memory.
  std::size_t scratch_bytes = 0;    ///< The largest scratch memory of a step, inside the arena.
  std::size_t output_bytes = 0;     ///< Outputs and carries.
  std::size_t sum_bytes = 0;        ///< For Trainer::plan: partial sums of gradients.
  std::size_t constant_bytes = 0;   ///< Constants and the copies of fed inputs.
  std::size_t parameter_bytes = 0;  ///< The parameters. Stores own them, not the player.
  std::size_t peak_bytes() const { return arena_bytes + output_bytes + sum_bytes + constant_bytes + parameter_bytes; }
};
std::ostream& operator<<(std::ostream& out, const Plan& plan);

/// The memory and the predicted time of a plan.
struct MemoryPoint {
  std::size_t bytes = 0;        ///< Plan::peak_bytes.
  std::size_t arena_bytes = 0;  ///< The part of `bytes` in the arena.
  double seconds = 0;           ///< The sum of Plan::Step::seconds.
  std::int64_t again = 0;       ///< The number of steps that recompute results.
};
/// Returns the memory and time of the plans that PlayerOptions::memory chooses from. The first plan keeps every value.
/// Each further plan needs less memory and more time than the previous one. The last plan needs the least possible
/// memory. Does not allocate the memory of the plans. Errors are those of Player.
std::vector<MemoryPoint> memory_curve(const Tape& tape, const Vars& outputs, const PlayerOptions& options = {});

/// A plan that cannot stay below PlayerOptions::memory.
class MemoryError : public Error {
 public:
  MemoryError(const std::string& message, std::size_t least) : Error(message), least_(least) {}
  /// The least possible value of PlayerOptions::memory in bytes. If a Trainer throws this error, the least possible
  /// value of TrainerOptions::memory.
  std::size_t least() const { return least_; }

 private:
  std::size_t least_;
};

/// Chosen outputs of a tape, compiled. An executable is the immutable part that all players of a plan share. It is a
/// handle, cheap to copy. It keeps the tape and the arrays of parameters alive. Later recordings on the tape do not
/// affect it.
///
///   const Executable executable = compile(tape, {loss});
///   Player a(executable), b(executable);  // two threads may play them at once
///
/// Several threads may make players of an executable at once, as long as no thread records on the tape.
class Executable {
 public:
  Executable(const Executable&) = default;  // a move is a copy, so that a handle always has an executable
  Executable& operator=(const Executable&) = default;
  /// The description of the plan. Valid while the executable or one of its players exists. The first call builds the
  /// description, which is slow. The first call throws HandleError if an output has become stale.
  const Plan& plan() const;
  int threads() const;  ///< The most threads that a play uses.
  // The arguments of `compile`.
  const Tape& tape() const;
  const Vars& outputs() const;  ///< The outputs, followed by those of the carries.
  const PlayerOptions& options() const;

 private:
  friend class Player;
  friend Executable compile(const Tape& tape, const Vars& outputs, const PlayerOptions& options);
  struct Data;
  explicit Executable(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  std::shared_ptr<const Data> data_;
};
/// Plans the computation of `outputs` and the carries of `options`, and makes the kernels. Throws Error if there are no
/// outputs and no carries, an input is carried twice, or an op has an empty kernel. Throws Error with the op of the
/// largest buffer if the plan needs more memory than the process can have. Throws Error with Bits::same if the
/// precision, an op or the processor does not allow it. Throws MemoryError if the plan needs more than
/// PlayerOptions::memory, HandleError if a var is stale or belongs to another tape, ShapeError if the types of a carry
/// differ.
Executable compile(const Tape& tape, const Vars& outputs, const PlayerOptions& options = {});

/// Computes the outputs of an executable. A player has the memory for one play at a time, the outputs and carries of
/// the last play, and its own random step. Every play reads parameters in place, so no thread may write them during a
/// play. Only one thread at a time may use a player, while no thread records on the tape. Players may play at the same
/// time if they share neither arenas, outputs nor carries.
class Player {
 public:
  /// Players share the arena of PlayerOptions::arena and the states of Carry::memory if these are given. Throws Error
  /// with the op of the plan's largest buffer if memory runs out. Throws Error if the memory of a carry is also that of
  /// another carry or of a parameter.
  explicit Player(const Executable& executable);
  /// Makes the only player of compile(tape, outputs, options). Errors of compile and of the other constructor
  /// propagate.
  Player(const Tape& tape, const Vars& outputs, const PlayerOptions& options = {});
  Player(Player&&) noexcept;  ///< Using a moved-from player throws HandleError.
  Player& operator=(Player&&) noexcept;
  ~Player();

  /// Computes the outputs, without allocating. Each input that the outputs depend on needs one feed of its shape and
  /// dtype, except carried inputs. Feeds of other inputs are ignored. play copies the feeds. With the same seed and
  /// `random_step`, random ops draw the same numbers. The default step is the step of the last play plus one, so that
  /// each play draws new numbers.
  ///
  /// Throws DtypeError or ShapeError if a feed has another type, and Error if a feed is missing, given twice, or given
  /// for a carried input. These errors occur before any computation. Errors in the values (an index out of range) occur
  /// during the computation. They name the op and its site, and leave outputs and carried states unspecified.
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
  /// Plays, and calls `after` with i when step i of the plan is complete. The caller can then use some outputs before
  /// the play ends (see final_steps). An exception of `after` ends the play.
  void play(const std::vector<Feed>& feeds, std::uint64_t random_step, const std::function<void(std::int64_t)>& after,
            Caller caller = Caller::here());
  std::uint64_t step() const;  ///< The random step of the next play without an explicit step. Initially 0.
  /// Sets the random step of the next play. Plays from the same step draw the same numbers again.
  void set_step(std::uint64_t random_step);
  /// For each output, returns the step of the plan after which its value is final. Errors are those of `view`.
  std::vector<std::int64_t> final_steps(const Vars& outputs) const;
  /// Makes later plays write outputs[i] to memory[i], an array of the same type. Views of earlier plays stay valid and
  /// unchanged. The player frees its own memory of these outputs. An output that shares its memory with another output
  /// or a carry does not move. Returns for each output whether it has moved. Throws ShapeError or DtypeError if an
  /// array has another type. Throws Error if an output is given twice, an array is empty, or the player already uses
  /// the memory for something else. Errors of `view` propagate. After an error, nothing has moved.
  std::vector<bool> move_outputs(const Vars& outputs, const std::vector<Array>& memory);

  /// Returns an output of the last play, as a dense view. The view is valid until the next play or the end of the
  /// player. An output that is also carried may share the carry's memory. Throws Error before the first play, and if
  /// the var is not an output.
  ArrayView view(const Var& output, Caller caller = Caller::here()) const;
  /// Returns a copy of an output. Errors of `view` propagate. Throws DtypeError if T is not its element type.
  template <class T>
  typename XtensorOf<T>::type value(const Var& output, Caller caller = Caller::here()) const {
    return view(output, caller).to<T>();
  }
  /// Returns an output as an xtensor view, without a copy. Valid as long as the result of `view`. Errors are those of
  /// `value`.
  template <class T>
  typename XtensorOf<const T>::view tensor(const Var& output, Caller caller = Caller::here()) const {
    return view(output, caller).tensor<T>();
  }
  /// Returns the single element of an output, of any dtype, as a double. Throws ShapeError if the output does not have
  /// exactly one element.
  double scalar(const Var& output, Caller caller = Caller::here()) const;
  /// Returns the array that holds the state of a carry: the value of `input` at the next play. Initially zeros, or
  /// Carry::memory. The array may be written between plays. Throws Error if `input` is not carried or no output depends
  /// on it.
  Array carried(const Var& input);
  ArrayView carried(const Var& input) const;  ///< A view of this array.

  const Executable& executable() const;
  const Plan& plan() const;  ///< Executable::plan.
  /// With PlayerOptions::profile, the seconds of each step of the plan, summed over all plays. Otherwise empty.
  const std::vector<double>& seconds() const;
  std::int64_t measured() const;  ///< The number of plays measured.
  void forget_seconds();          ///< Resets `seconds` and `measured` to 0.
  int threads() const;            ///< Executable::threads.
  /// With PlayerOptions::digests, returns the hashes of the last play: first those of the inputs, states and parameters
  /// that the play read, then those of the outputs of its kernels, in order. Views and copies have no hashes. A hash
  /// depends only on the bits of the elements in row-major order. It equals the checksum that save_arrays writes.
  /// Values inside fused steps have no hashes (see Passes::unfused). Throws Error if the option is off.
  std::vector<Digest> digests() const;
  // The arguments of `compile`.
  const Tape& tape() const;
  const Vars& outputs() const;  ///< The outputs, followed by those of the carries.
  const PlayerOptions& options() const;

 private:
  struct Data;
  Owner<Data> data_;
};

/// Plays `var` once and returns its value, for exploration and debugging. The passes are Passes::reference() without
/// `unroll`. Random ops draw with seed and step 0. Errors of Player and Player::play propagate.
Array evaluate(const Var& var, const std::vector<Feed>& feeds = {}, Caller caller = Caller::here());
/// Returns the value of `var` as an xtensor array. Errors of `evaluate` propagate. Throws DtypeError if T is not the
/// element type.
template <class T>
typename XtensorOf<T>::type value(const Var& var, const std::vector<Feed>& feeds = {}, Caller caller = Caller::here()) {
  return evaluate(var, feeds, caller).to<T>();
}

}  // namespace xtape
