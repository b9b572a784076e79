/// The optimiser: its weights in pieces, their moments, and the arithmetic of an update.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "kernels/table/update.hpp"
#include "xtape/optim.hpp"

namespace xtape {

class SimulatedTeam;

// Groups of weights for which an optimiser has different options.

/// Returns whether the pattern matches the name. Patterns have the syntax of shell patterns (fnmatch), but a star also
/// matches dots: "*.lora_*", "h.[01].*", "wte.weight".
bool matches_pattern(const std::string& name, const std::string& pattern);
/// Returns the hint for a pattern that matches no weight. The hint is ", did you mean …" with the nearest name or
/// likely pattern. If nothing is near, the hint is an example of the names.
std::string nearest_pattern(const std::string& pattern, const Store& weights);

/// Returns the index of the first group that matches the weight, or groups.size() if no group matches.
std::size_t group_of(const std::string& weight, const std::vector<OptimizerGroup>& groups);
/// Throws Error if the pattern of a group matches no weight.
void check_patterns(const Store& weights, const std::vector<OptimizerGroup>& groups);

/// A range of the elements of one weight. A thread updates one piece at a time, and a rank owns whole pieces.
struct Piece {
  /// The maximum number of elements. It is fixed, so that the rounding of norms does not depend on the numbers of
  /// threads and ranks.
  static constexpr std::int64_t most = 32768;

  std::size_t weight = 0;
  std::int64_t begin = 0;
  std::int64_t count = 0;
};

/// Returns the pieces of the weights in order. Throws DtypeError if a weight is not a float.
std::vector<Piece> pieces_of(const Store& weights);

/// Per piece: the address of its gradient, or null if this process does not update the piece.
using PieceGradients = std::vector<const void*>;

/// Per weight: whether any process has a gradient for it. The update then counts for the weight.
using ReachedWeights = std::vector<char>;

/// Throws Error if the learning rate or the clipping norm of an update is out of range.
void check_numbers(double rate, double clip);

/// The processes ("ranks") that make an update together, as an optimiser sees them. Each process updates the pieces
/// that it owns. This class itself is a single process.
class UpdateGroup {
 public:
  UpdateGroup() = default;
  UpdateGroup(const UpdateGroup&) = delete;
  UpdateGroup& operator=(const UpdateGroup&) = delete;
  virtual ~UpdateGroup() = default;
  virtual int size() const { return 1; }
  /// Returns whether this process updates the piece and holds its moments.
  virtual bool owns(std::size_t /*piece*/) const { return true; }
  /// Completes a list with one number per piece, in which each process has filled in the numbers of its own pieces.
  virtual void share(std::vector<double>& /*of_piece*/) {}
  /// Sends this process's text to all processes, and returns the texts of all processes.
  virtual std::vector<std::string> all_gather(const std::string& own) { return {own}; }
};

/// The maximum count of updates that a state may have, so that further counting does not overflow.
inline constexpr std::int64_t most_updates = std::int64_t{1} << 62;

/// The largest absolute values of weights and moments, or upper bounds of them.
struct Magnitudes {
  double weight = 0;
  double first = 0;   ///< The largest first moment or velocity.
  double second = 0;  ///< The largest second moment.
  /// The largest ratio of a first moment to the root of its second moment. Tiny first moments do not count.
  double ratio = 0;
};

struct Optimizer::Data {
  /// Throws Error if an option is out of range or if no group matches a weight. Throws DtypeError as pieces_of does.
  Data(const Store& weights, const std::vector<OptimizerGroup>& groups, int threads,
       std::unique_ptr<UpdateGroup> ranks = std::make_unique<UpdateGroup>());

  const Store& weights() const { return weights_; }
  const std::vector<Piece>& pieces() const { return pieces_; }
  Dtype dtype(const Piece& piece) const { return weights_[piece.weight].value.dtype(); }
  const OptimizerOptions& options(const Piece& piece) const { return of(piece).options; }

  /// Returns the addresses of the gradients in views, one view per weight. Throws as Optimizer::update does if a view
  /// does not fit its weight.
  const PieceGradients& found(const std::vector<ArrayView>& views);
  /// Returns which weights have a view, after found().
  const ReachedWeights& reached() const { return reached_; }
  /// Makes one update with the gradients times `scale`, clipped to the norm `clip` (0: no clipping). Returns the norm
  /// before clipping. If the norm is not finite, nothing changes. Throws Error as check_numbers does. Throws
  /// UpdateError if the update would make a weight or moment NaN or infinite. After an error nothing has changed. For
  /// almost every update, bounds on weights and moments rule this error out.
  double update(const PieceGradients& gradients, const ReachedWeights& reached, double rate, double scale, double clip);
  /// Makes the next update measure weights and moments again.
  void forget_bounds();

  /// Returns the kinds of moments that at least one weight has: some of "velocity", "first" and "second".
  const std::vector<std::string>& kinds() const { return kinds_; }
  /// Returns whether a weight has moments of this kind.
  bool keeps(std::size_t kind, std::size_t weight) const;
  /// Returns the moments of an owned piece. Returns null if the piece is not owned or its weight has no moments of this
  /// kind.
  void* moment(std::size_t kind, std::size_t piece) const { return moments_[kind][piece]; }
  /// Returns the number of updates of each weight: int64 [weights].
  const Array& updates() const { return updates_; }
  Array& updates() { return updates_; }
  /// Contains "updates" and, in a single process, the moments as arrays with the shapes of the weights.
  const Store& state() const { return state_; }

 private:
  /// A group of weights.
  struct Group {
    OptimizerOptions options;
    bool narrow = false;     // whether the group has a float32 weight
    AdamUpdate step = {};    // of the next update, apart from corrections; sgd uses only its rate and scale
    double fewest = 0;       // updates of a weight that the next update changes, including it
    Magnitudes bounds = {};  // infinite at first
  };
  const Group& of(const Piece& piece) const { return groups_[group_of_[piece.weight]]; }
  /// Sets the steps of the groups for the next update. Throws Error if a number of updates is out of range.
  void set_steps(const ReachedWeights& reached, double rate, double scale);
  /// Sets the bias corrections of an update that is a weight's `updates`th.
  static void correct(AdamUpdate& step, double updates);
  /// Reports to `team` that the calling thread has made an update, and which memory it reads and writes.
  void note_update(SimulatedTeam& team, const PieceGradients& gradients) const;
  /// Throws UpdateError if the update would overflow.
  void check_update(const PieceGradients& gradients, double norm);
  /// Uses the bounds to judge whether an update keeps weights and moments finite. `norm` is the norm of the scaled
  /// gradients. Does not read the weights and moments. If the result is true, it is certain, and the bounds already
  /// describe the state after the update, so the update must follow. If the result is false, the update may overflow.
  bool stays_finite(double norm);
  /// Measures the magnitudes of each group in the owned pieces, in one pass.
  std::vector<Magnitudes> magnitudes() const;
  /// Computes the update on copies. Returns a sentence about the first weight or moment that the update would make NaN
  /// or infinite, or "" if there is none.
  std::string overflow(const PieceGradients& gradients) const;
  void allocate(std::size_t kind);
  double decay_of(const Piece& piece) const;
  /// Calls f(index, T{}) in parallel for every piece with a gradient. T is the element type of the piece's weight.
  template <class F>
  void for_pieces(const PieceGradients& gradients, const F& f) const;
  /// Returns the moments of an owned piece for the kinds that its weight has. The others are null.
  template <class T>
  std::array<T*, 2> moments_of(std::size_t piece) const;
  /// Updates one piece, whose arrays are at these addresses.
  template <class T>
  void update_piece(const Piece& piece, T* weight, const T* gradient, const std::array<T*, 2>& moments) const;

  int threads_;
  Store weights_;
  std::vector<Group> groups_;
  std::vector<std::size_t> group_of_;  // per weight
  std::vector<Piece> pieces_;
  std::vector<std::string> kinds_;
  std::vector<std::vector<void*>> moments_;  // per kind and piece: the address of the moments
  std::vector<Array> memory_;                // the memory of the moments, if there are several processes
  Array updates_;
  Store state_;
  std::vector<double> square_sums_;
  PieceGradients found_;  // the result of found()
  ReachedWeights reached_;
  std::unique_ptr<UpdateGroup> ranks_;
};

}  // namespace xtape
