/// The arithmetic of optimisers, on pieces of weights. A process owns all pieces or some of them.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "update.hpp"
#include "xtape/optim.hpp"

namespace xtape {

/// A range of the elements of one weight: what a thread updates at a time, and what a rank owns.
struct Piece {
  /// The most elements. It is fixed, so that the rounding of norms depends on neither threads nor ranks.
  static constexpr std::int64_t most = 32768;

  std::size_t weight = 0;
  std::int64_t begin = 0;
  std::int64_t count = 0;
};

/// The pieces of the weights, in their order. Throws DtypeError unless all weights are floats.
std::vector<Piece> pieces_of(const Store& weights);

/// Per piece: the address of its gradient; null if this process does not update it.
using PieceGradients = std::vector<const void*>;

/// Throws Error if the learning rate or the clipping norm of an update is out of range.
void check_numbers(double rate, double clip);

/// Gives this process's text to all processes of a training, and returns the texts of all.
using AllGather = std::function<std::vector<std::string>(const std::string&)>;
/// What an update does that several processes make together, each with the pieces that it owns.
struct SharedUpdate {
  std::function<void(std::size_t piece)> before;         ///< Just before the gradient of a piece is read, in any thread.
  std::function<void(std::vector<double>& sums)> share;  ///< Completes the sums of squares of the pieces.
  AllGather all_gather;
};

/// The most updates that a state may count, so that counting on does not overflow.
inline constexpr std::int64_t most_updates = std::int64_t{1} << 62;

/// How large weights and moments are: the largest absolute values, or numbers above them.
struct Magnitudes {
  double weight = 0;
  double first = 0;   ///< The largest first moment or velocity.
  double second = 0;  ///< The largest second moment.
  double ratio = 0;   ///< The largest ratio of a first moment to the root of its second moment, apart from tiny ones.
};

class PieceOptimizer {
 public:
  /// `owned`: per piece, whether this process updates it and holds its moments; empty: all. Throws Error if an option
  /// is out of range or no group matches a weight, DtypeError as pieces_of.
  PieceOptimizer(const Store& weights, const std::vector<OptimizerGroup>& groups, int threads,
                 const std::vector<bool>& owned = {});

  const Store& weights() const { return weights_; }
  const std::vector<Piece>& pieces() const { return pieces_; }
  Dtype dtype(const Piece& piece) const { return weights_[piece.weight].value.dtype(); }
  const OptimizerOptions& options(const Piece& piece) const { return of(piece).options; }
  int threads() const { return threads_; }

  /// One update by the gradients times `scale`, whose norm is clipped to `clip` (0: not). Returns the norm before that;
  /// if it is not finite, nothing has changed. Throws Error as check_numbers, and UpdateError if the update would make a
  /// weight or moment NaN or infinite; nothing has changed then. Bounds on both rule that out for almost every update.
  double update(const PieceGradients& gradients, double rate, double scale, double clip,
                const SharedUpdate& shared = {});
  /// The next update measures weights and moments.
  void forget_bounds();

  /// The kinds of moments that any weight has, of "velocity", "first" and "second".
  const std::vector<std::string>& kinds() const { return kinds_; }
  /// Whether a weight has moments of the kind.
  bool keeps(std::size_t kind, std::size_t weight) const;
  /// The moments of an owned piece; null for others, and if its weight has none of the kind.
  void* moment(std::size_t kind, std::size_t piece) const { return moments_[kind][piece]; }
  /// The number of updates: int64 [1].
  const Array& updates() const { return updates_; }
  Array& updates() { return updates_; }
  /// The moments as arrays of the weights' shapes, if all pieces are owned, and "updates".
  const Store& state() const { return state_; }

 private:
  /// A group of weights.
  struct Group {
    OptimizerOptions options;
    bool narrow = false;  // has a float32
    AdamStep step;        // of the update to come: its rate and scale, also for sgd
    Magnitudes bounds;    // at first infinite
  };
  const Group& of(const Piece& piece) const { return groups_[group_of_[piece.weight]]; }
  /// Sets the steps of the groups. Throws Error if the number of updates is out of range.
  void set_steps(double rate, double scale);
  void check_update(const PieceGradients& gradients, double norm, const AllGather& all_gather);
  /// Whether an update by scaled gradients of this norm keeps weights and moments finite, judged by bounds on both. It
  /// needs no pass over them, and `true` is certain. The update must follow: the bounds become those after it.
  bool stays_finite(double norm);
  std::vector<Magnitudes> magnitudes() const;  ///< The magnitudes of each group in the owned pieces: a pass over them.
  /// Makes the update on copies. Returns a sentence that names the first weight or moment that it would make NaN or
  /// infinite; "" if there is none.
  std::string overflow(const PieceGradients& gradients) const;
  void allocate(std::size_t kind, const std::vector<bool>& owned);
  double decay_of(const Piece& piece) const;
  /// The moments of an owned piece, of the kinds that its weight has; else null.
  template <class T>
  std::array<T*, 2> moments_of(std::size_t piece) const;
  /// The update of one piece, whose arrays are at these places.
  template <class T>
  void update_piece(const Piece& piece, T* weight, const T* gradient, const std::array<T*, 2>& moments) const;

  int threads_;
  Store weights_;
  std::vector<Group> groups_;
  std::vector<std::size_t> group_of_;  // per weight
  std::vector<Piece> pieces_;
  std::vector<std::string> kinds_;
  std::vector<std::vector<void*>> moments_;  // per kind and piece
  std::vector<Array> memory_;                // of moments, if only some pieces are owned
  Array updates_;
  Store state_;
  std::vector<double> square_sums_;
};

}  // namespace xtape
