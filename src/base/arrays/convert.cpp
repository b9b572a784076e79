#include "base/arrays/convert.hpp"

#include "base/threads/thread_count.hpp"
#include "base/threads/threads.hpp"
#include "base/arrays/visit.hpp"

namespace xtape {

void convert_floats(const Array& from, Array& to) {
  constexpr std::int64_t grain = 1 << 14;
  visit_floats(from, [&](const auto* given) {
    visit_floats(to, [&]<class T>(T* converted) {
      parallel_for(thread_count(), from.count(), grain, [&](std::int64_t begin, std::int64_t finish) {
        for (std::int64_t i = begin; i < finish; ++i) converted[i] = static_cast<T>(given[i]);
      });
    });
  });
}

}  // namespace xtape
