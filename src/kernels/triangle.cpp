#include "triangle.hpp"

#include <algorithm>
#include <cstring>

#include "threads.hpp"

namespace xtape {

void copy_triangle(Dtype dtype, std::int64_t matrices, std::int64_t rows, std::int64_t columns, std::int64_t diagonal,
                   bool lower, const void* x, void* out, int threads) {
  const auto bytes = static_cast<std::int64_t>(size_of(dtype));
  const char* from = static_cast<const char*>(x);
  char* to = static_cast<char*>(out);
  parallel_for(threads, matrices * rows, std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, columns)),
               [&](std::int64_t begin, std::int64_t finish) {
                 for (std::int64_t k = begin; k < finish; ++k) {
                   const std::int64_t edge =
                       std::clamp<std::int64_t>(k % rows + diagonal + (lower ? 1 : 0), 0, columns);
                   const std::int64_t kept = lower ? 0 : edge, kept_end = lower ? edge : columns;
                   const char* source = from + k * columns * bytes;
                   char* target = to + k * columns * bytes;
                   std::memset(target + (lower ? edge : 0) * bytes, 0,
                               static_cast<std::size_t>((lower ? columns - edge : edge) * bytes));
                   if (source != target)
                     std::memcpy(target + kept * bytes, source + kept * bytes,
                                 static_cast<std::size_t>((kept_end - kept) * bytes));
                 }
               });
}

}  // namespace xtape
