/// Traces: which step of a plan ran when, which threads took part, and how much memory was in use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>

namespace xtape {

/// Records what players that have it as PlayerOptions::trace compute while it is on. Recording allocates nothing:
/// events beyond the capacity are dropped. Several threads may record at the same time; the other functions need that
/// none does.
class Trace {
 public:
  explicit Trace(std::size_t capacity = std::size_t{1} << 18);  ///< Events, of 40 bytes each.
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;
  ~Trace();

  void set_on(bool on);  ///< Initially off.
  bool on() const;
  /// Adds work that no player does, such as an optimizer's, of the calling thread: from `begin` to now. Does nothing
  /// while the trace is off. `name` is not copied.
  void add(const char* name, double begin);
  static double now();          ///< Seconds on the clock of traces.
  std::size_t events() const;   ///< Recorded.
  std::size_t dropped() const;  ///< Not recorded, because the trace was full.

  /// Writes JSON in the Chrome trace event format, which Perfetto and chrome://tracing open. A step is an event "X" of
  /// the thread that plays, with "module", "site", "outputs", "flops" and "bytes" in "args"; each other thread that
  /// takes part has an event of the same name. The counter "memory" has the bytes in use: temporaries that are alive,
  /// and what a player holds all the time.
  void write(std::ostream& out) const;

 private:
  friend class TracedPlan;
  struct Data;
  std::unique_ptr<Data> data_;
};

}  // namespace xtape
