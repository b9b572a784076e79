#pragma once

#include <cstdint>
#include <functional>

namespace xtape {

/// Told of rows [first, last) of a result when they are done, by the thread that did them: of no two at a time is
/// `worker`, in [0, threads), the same.
using RowsDone = std::function<void(std::int64_t first, std::int64_t last, std::int64_t worker)>;

}  // namespace xtape
