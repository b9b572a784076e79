/// The moving average of the weights of a training.
#pragma once

#include <string>
#include <vector>

#include "optim/optimizer.hpp"
#include "ranks/rank_group.hpp"
#include "xtape/array.hpp"
#include "xtape/communicator.hpp"

namespace xtape::train {

/// Keeps an exponential moving average of weights (Polyak and Juditsky, 1992). Its first value are the weights after
/// the first update, as in PyTorch's AveragedModel. Ranks of one host share the weights, so one of them keeps the
/// average.
class WeightAverage {
 public:
  /// `weights` share memory with the model. All arguments must outlive the object.
  WeightAverage(const Store& weights, double decay, int threads, ranks::RankGroup& group);
  /// Takes the weights after an update into account. All ranks must call it together.
  void update();
  /// Calls work() while the weights of the model are the averages. Ranks must call it together. If `work` throws, the
  /// weights are themselves again, unless the ranks can no longer communicate. Without an update, calls work() only.
  template <class Work>
  void show(const Work& work) {
    exchange();
    try {
      work();
    } catch (const CommunicationError&) {
      throw;
    } catch (...) {
      exchange();
      throw;
    }
    exchange();
  }
  /// Returns the averages, or an empty store before the first update, and on ranks that keep none.
  const Store& averages() const { return averages_; }
  /// Returns the averages in a file. The store is empty if there is no such file, and on ranks that keep no averages.
  /// Throws FileError if the file does not have these weights.
  Store read(const std::string& path) const;
  /// Continues from these averages or, if the store is empty, from the weights after the next update.
  void set(const Store& averages) { averages_ = averages; }
  /// The memory that the averages will take from the first update on.
  std::size_t absent_bytes() const;

 private:
  template <class T>
  void move(const Piece& piece);
  void exchange();
  const Store& weights_;
  double decay_;
  int threads_;
  std::vector<Piece> pieces_;
  ranks::RankGroup& group_;
  bool keeps_;  // whether this is the first rank of its host
  Store averages_;
};

}  // namespace xtape::train
