/// What a thread works on, so that other threads that help with it can say so.
#pragma once

namespace xtape {

/// Seconds on the steady clock.
double seconds_now();

/// The work of one thread while it lives: opens a parallel region, and other threads take part. See parallel_pieces.
class Activity {
 public:
  Activity();
  Activity(const Activity&) = delete;
  Activity& operator=(const Activity&) = delete;
  virtual ~Activity();
  /// Another thread has helped, from `begin` to now. Called by that thread, possibly by several at the same time.
  virtual void helped(double begin) const = 0;

  /// The newest of this thread that lives; null if nothing is traced.
  static const Activity* current();

 private:
  const Activity* outer_;
};

/// Tells `activity`, unless it is null, when the calling thread helped: while this object lives.
class Help {
 public:
  explicit Help(const Activity* activity) : activity_(activity), begin_(activity != nullptr ? seconds_now() : 0) {}
  Help(const Help&) = delete;
  Help& operator=(const Help&) = delete;
  ~Help() {
    if (activity_ != nullptr) activity_->helped(begin_);
  }

 private:
  const Activity* activity_;
  double begin_;
};

/// A small number for the calling thread, the same as long as it lives.
int thread_number();

}  // namespace xtape
