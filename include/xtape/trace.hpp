/// Traces record which step of a plan ran when, the participating threads, and the memory in use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>

namespace xtape {

/// Records the steps of all players that have this trace in PlayerOptions::trace, while the trace is on. Recording does
/// not allocate. Events beyond the capacity are dropped. Several threads may record at the same time. No thread may
/// record while another thread calls any other function of the trace.
class Trace {
 public:
  /// `capacity` is the number of events, of 40 bytes each. Throws Error if the memory left is too small for them.
  explicit Trace(std::size_t capacity = std::size_t{1} << 18);
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;
  ~Trace();

  void set_on(bool on);  ///< Initially off.
  bool on() const;
  /// Adds an event for work of the calling thread from `begin` to now. The work is not part of a player. An example is
  /// the update of an optimiser. Does nothing while the trace is off. `name` is not copied, so it must stay valid.
  void add(const char* name, double begin);
  static double now();          ///< Seconds on the clock of traces.
  std::size_t events() const;   ///< The number of recorded events.
  std::size_t dropped() const;  ///< The number of events dropped because the trace was full.

  /// Writes JSON in the Chrome trace event format, for Perfetto and chrome://tracing. A step is an event "X" of the
  /// playing thread, with "module", "site", "outputs", "flops" and "bytes" in "args". Each other participating thread
  /// has an event of the same name. The counter "memory" contains the bytes in use: live temporaries, and the permanent
  /// memory of players.
  void write(std::ostream& out) const;

 private:
  friend class TracedPlan;
  struct Data;
  std::unique_ptr<Data> data_;
};

}  // namespace xtape
