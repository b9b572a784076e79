/// Describes the work of a thread, so that threads that help with it can report their help.
#pragma once

namespace xtape {

/// Returns the seconds on the steady clock.
double seconds_now();

/// The work of one thread during its lifetime. The thread opens a parallel region, in which other threads take part.
/// See parallel_pieces.
class Activity {
 public:
  Activity();
  Activity(const Activity&) = delete;
  Activity& operator=(const Activity&) = delete;
  virtual ~Activity();
  /// Reports that another thread has helped from `begin` to now. The helping thread calls it, possibly several threads
  /// at the same time.
  virtual void helped(double begin) const = 0;

  /// Returns the newest activity of this thread that still exists, or null if nothing is traced.
  static const Activity* current();

 private:
  const Activity* outer_;
};

/// Reports the help of the calling thread to `activity`, unless this is null. The help lasts for the lifetime of this
/// object.
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
