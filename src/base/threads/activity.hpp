/// Describes the work of a thread. Threads that help with this work report the time of their help.
#pragma once

namespace xtape {

/// Returns the seconds on the steady clock.
double seconds_now();

/// The work of one thread during the lifetime of this object. The thread opens parallel regions, in which other threads
/// take part. See parallel_pieces.
class Activity {
 public:
  Activity();
  Activity(const Activity&) = delete;
  Activity& operator=(const Activity&) = delete;
  virtual ~Activity();
  /// Reports that the calling thread has helped from `begin` to now. Several helping threads may call this function at
  /// the same time.
  virtual void helped(double begin) const = 0;

  /// Returns the newest existing activity of the calling thread, or null if there is none.
  static const Activity* current();

 private:
  const Activity* outer_;
};

/// Reports the help of the calling thread to `activity`, unless `activity` is null. The help lasts for the lifetime of
/// this object.
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

/// Returns a small number for the calling thread. The number does not change during the thread's lifetime.
int thread_number();

}  // namespace xtape
