/// Counts operations on files and makes them fail. This program defines functions of the C library itself; its
/// definitions take precedence, also for its shared libraries.
#pragma once

#include <string>

namespace faults {

enum class Fault : char {
  none,
  kill,      ///< The process dies before the operation; half of a write is done.
  no_space,  ///< From this operation on, those that need disk space fail with ENOSPC; half of a write is done.
  io_error,  ///< The operation fails with EIO.
  no_memory  ///< The operation fails with ENOMEM.
};

struct Operation {
  char name[12] = {};
  bool needs_room = false;  ///< It makes, extends or flushes a file.
  char path[112] = {};      ///< The end of the path; "" for an operation on an unknown open file.
};

constexpr int most_operations = 4096;

/// The state that parent and child share.
struct Report {
  int count = 0;
  Operation operations[most_operations];
  char error[1024] = {};
  char warnings[4096] = {};
};

/// The report, in memory that children share.
Report& report();

/// Starts counting the operations below `root`; number `at` (from 0) fails.
void begin(const std::string& root, Fault fault, int at);

}  // namespace faults
