/// Operations on files, counted, and made to fail. This program's own definitions of the C library's calls stand before
/// those of the library, for its shared libraries too.
#pragma once

#include <string>

namespace faults {

enum class Fault : char {
  none,
  kill,      ///< The process dies before the operation; of a write half is done.
  no_space,  ///< From the operation on, whatever needs room on the disk fails with ENOSPC; of a write half is done.
  io_error   ///< The operation fails with EIO.
};

struct Operation {
  char name[12] = {};
  bool needs_room = false;  ///< It makes or lengthens a file, or waits until that is so.
  char path[112] = {};      ///< Its end; "" where the operation is on an open file that is not known.
};

constexpr int most_operations = 4096;

/// What parent and child see of each other.
struct Report {
  int count = 0;
  Operation operations[most_operations];
  char error[1024] = {};
};

/// In memory that children share.
Report& report();

/// From here on operations below `root` are counted, and the one numbered `at` (from 0) fails.
void begin(const std::string& root, Fault fault, int at);

}  // namespace faults
