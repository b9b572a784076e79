/// The optimiser: its weights in pieces, their moments, and the arithmetic of an update.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/threads/threads.hpp"
#include "kernels/table/update.hpp"
#include "xtape/op/kernel.hpp"
#include "xtape/optim.hpp"
#include "xtape/precision.hpp"

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

/// A range of the elements of one weight, and a rank owns whole pieces. A thread updates one piece at a time, unless
/// its update needs the whole weight: all threads together make such an update.
struct Piece {
  /// The maximum number of elements. It is fixed, so that the rounding of norms does not depend on the numbers of
  /// threads and ranks.
  static constexpr std::int64_t most = 32768;

  std::size_t weight = 0;
  std::int64_t begin = 0;
  std::int64_t count = 0;
  bool whole = false;  ///< Whether the update needs the whole weight, which then is one piece of any size.
};

/// Returns the pieces of the weights in order. Throws DtypeError if a weight is not a float.
std::vector<Piece> pieces_of(const Store& weights, const std::vector<OptimizerGroup>& groups);

// Arrays of the state.

enum class Moment : std::uint8_t { velocity, first, second, first_scales, second_scales, rows, columns };
inline constexpr std::array<const char*, 7> moment_names = {"velocity",      "first", "second", "first_scales",
                                                            "second_scales", "rows",  "columns"};
inline constexpr std::size_t moment_kinds = moment_names.size();

/// The array of the moments of one kind for one weight.
struct MomentType {
  Dtype dtype = Dtype::float32;
  Shape shape = {};
  std::int64_t unit = 1;  ///< The number of elements of the weight for each element of the moment. 0: not by element.

  /// Returns the elements of the moment that belong to a piece: its first, and its number.
  std::pair<std::int64_t, std::int64_t> of(const Piece& piece) const;
};
/// Returns the type of the moments of this kind that a weight has with these options, or nothing if it has none.
std::optional<MomentType> moment_type(Moment kind, const OptimizerOptions& options, const Array& weight);
/// The addresses of the moments of a piece. Those that its weight does not have are null.
using PieceMoments = std::array<void*, moment_kinds>;

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

// Matrices whose singular values are nearly 1, for muon.

/// Newton-Schulz iterations of degree five (Jordan et al., 2024, Muon: an optimizer for hidden layers in neural
/// networks). They move the singular values of a matrix to between 0.7 and 1.2, and keep its singular vectors. The
/// products are planned once for matrices [rows, columns] of the dtype. Results have the same bits for any number of
/// threads.
class Orthogonal {
 public:
  Orthogonal(Dtype dtype, std::int64_t rows, std::int64_t columns, int threads, Bits bits);
  /// The memory that a call needs, aligned to 64 bytes.
  std::size_t scratch_bytes() const { return offsets_[4]; }
  /// Replaces the matrix at `x`, of which `norm` is the Frobenius norm. The result is at `x` or in the scratch memory.
  template <class T>
  T* operator()(T* x, double norm, std::int64_t iterations, void* scratch) const;

 private:
  std::int64_t small_, count_;  // the smaller size, and the number of elements
  bool wide_;                   // whether there are at least as many columns as rows
  int threads_;
  Kernel gram_, square_, product_;
  std::size_t offsets_[5] = {};  // of the Gram matrix, its square, the next matrix, and the memory of products; the end
};

struct Optimizer::Data {
  /// Throws Error if an option is out of range or if no group matches a weight. Throws DtypeError as pieces_of does.
  Data(const Store& weights, const std::vector<OptimizerGroup>& groups, int threads, Bits bits = Bits::usual,
       std::unique_ptr<UpdateGroup> ranks = std::make_unique<UpdateGroup>());

  const Store& weights() const { return weights_; }
  const std::vector<Piece>& pieces() const { return pieces_; }
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

  /// Returns the type of the moments of a weight, or null if it has none of this kind.
  const MomentType* type(std::size_t kind, std::size_t weight) const {
    const auto& type = types_[kind][weight];
    return type ? &*type : nullptr;
  }
  /// Returns the moments of an owned piece. Returns null if the piece is not owned or its weight has no moments of this
  /// kind.
  void* moment(std::size_t kind, std::size_t piece) const { return moments_[piece][kind]; }
  /// Returns the first byte of the moments of a piece in an array of type(kind, weight), and their number of bytes.
  std::pair<std::size_t, std::size_t> moment_bytes(std::size_t kind, const Piece& piece) const;
  const Array& scratch() const { return scratch_; }  ///< The memory of whole updates.
  /// Returns the number of updates of each weight: int64 [weights].
  const Array& updates() const { return updates_; }
  Array& updates() { return updates_; }
  /// Contains "updates" and, in a single process, the moments as arrays of their types.
  const Store& state() const { return state_; }

 private:
  /// A group of weights. Those of a muon group that are not of rank 2 have a group of their own, with adamw.
  struct Group {
    OptimizerOptions options;
    bool narrow = false;     // whether the group has float32 weights or moments of eight bits
    double root = 0;         // of the number of elements of the largest weight
    double fewest = 0;       // updates of a weight that the next update changes, including it
    AdamUpdate step = {};    // of the next update, apart from corrections; the other kinds use only some members
    Magnitudes bounds = {};  // infinite at first
  };
  struct WithinBounds;
  const Group& of(const Piece& piece) const { return groups_[group_of_[piece.weight]]; }
  Dtype dtype(const Piece& piece) const { return weights_[piece.weight].value.dtype(); }
  /// Returns the number of updates of the weight, including the next one.
  double updates_of(const Piece& piece) const {
    return static_cast<double>(updates_.as<std::int64_t>()[piece.weight] + 1);
  }
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
  /// Returns bounds after an update of a group, all of which are `within` what its dtype can hold.
  static Magnitudes bounds_after(const Group& group, double norm, WithinBounds& within);
  static Magnitudes adam_bounds(const Group& group, double norm, WithinBounds& within);
  /// Measures the magnitudes of each group in the owned pieces, in one pass.
  std::vector<Magnitudes> magnitudes() const;
  /// Computes the update on copies. Returns a sentence about the first weight or moment that the update would make NaN
  /// or infinite, or "" if there is none.
  std::string overflow(const PieceGradients& gradients) const;
  void group_weights(const std::vector<OptimizerGroup>& groups);
  void allocate(std::size_t kind);
  /// Plans the products of muon, and reserves the memory that whole updates need.
  void plan_whole_updates(Bits bits);
  double decay_of(const Piece& piece) const;
  template <class F>
  void call_with_type(std::size_t index, const F& f) const {
    if (dtype(pieces_[index]) == Dtype::float64)
      f(index, double{});
    else
      f(index, float{});
  }
  /// Calls f(index, T{}) in parallel for every piece with a gradient. T is the element type of the piece's weight.
  template <class F>
  void for_pieces(const PieceGradients& gradients, const F& f) const;
  /// The same, but pieces whose update needs the whole weight come last, one after the other.
  template <class F>
  void for_updates(const PieceGradients& gradients, const F& f) const;
  /// Updates one piece, whose arrays are at these addresses.
  template <class T>
  void update_piece(const Piece& piece, T* weight, const T* gradient, const PieceMoments& moments) const;
  template <class T>
  void update_muon(const Piece& piece, T* weight, const T* gradient, T* velocity) const;
  template <class T>
  void update_adafactor(const Piece& piece, T* weight, const T* gradient, const PieceMoments& moments) const;
  /// Updates the means of squares of the rows and columns of a matrix. Uses the first `width` numbers of sums_.
  template <class T>
  void add_mean_squares(const T* gradient, T* rows, T* columns, std::int64_t row_count, std::int64_t width,
                        const AdamUpdate& step, double fresh) const;
  /// Returns the sum of the squares of an array, with the same bits for any number of threads.
  template <class T>
  double all_squares(const T* values, std::int64_t count) const;

  int threads_;
  Store weights_;
  std::vector<Group> groups_;
  std::vector<std::size_t> group_of_;  // per weight
  std::vector<Piece> pieces_;
  std::array<std::vector<std::optional<MomentType>>, moment_kinds> types_;  // per weight
  std::vector<PieceMoments> moments_;                                       // per piece
  std::vector<Array> memory_;  // the memory of the moments, if there are several processes
  Array updates_;
  Store state_;
  std::vector<double> square_sums_;
  PieceGradients found_;  // the result of found()
  ReachedWeights reached_;
  std::unique_ptr<UpdateGroup> ranks_;
  std::vector<std::unique_ptr<Orthogonal>> orthogonal_;  // per weight; null if muon does not update it here
  mutable std::vector<double> sums_;                     // of rows and columns in an update of adafactor
  mutable std::vector<double> parts_;                    // of all_squares
  mutable Array scratch_;                                // of an update of muon
};

template <class F>
void Optimizer::Data::for_pieces(const PieceGradients& gradients, const F& f) const {
  parallel_for(threads_, std::ssize(pieces_), 1, [&](std::int64_t begin, std::int64_t finish) {
    for (std::int64_t i = begin; i < finish; ++i)
      if (const auto index = static_cast<std::size_t>(i); gradients[index] != nullptr) call_with_type(index, f);
  });
}

template <class F>
void Optimizer::Data::for_updates(const PieceGradients& gradients, const F& f) const {
  parallel_for(threads_, std::ssize(pieces_), 1, [&](std::int64_t begin, std::int64_t finish) {
    for (std::int64_t i = begin; i < finish; ++i)
      if (const auto index = static_cast<std::size_t>(i); gradients[index] != nullptr && !pieces_[index].whole)
        call_with_type(index, f);
  });
  for (std::size_t index = 0; index < pieces_.size(); ++index)
    if (gradients[index] != nullptr && pieces_[index].whole) call_with_type(index, f);
}

}  // namespace xtape
