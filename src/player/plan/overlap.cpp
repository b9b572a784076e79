#include "player/plan/overlap.hpp"

#include <algorithm>
#include <functional>

namespace xtape {

namespace {
struct Range {
  const std::byte* begin;
  const std::byte* end;
  const Buffer* buffer;
};

bool is_written(const Buffer& buffer) {
  return buffer.kind == BufferKind::output || buffer.kind == BufferKind::carry || buffer.kind == BufferKind::input;
}

std::string described(const PlannedProgram& planned, const Buffer& buffer) {
  return std::string(name_of(buffer.kind)) + " '" + planned.name_of(buffer) + "'";
}
}  // namespace

void check_overlaps(const PlannedProgram& planned, const std::vector<Array>& memory) {
  std::vector<Range> ranges;
  for (const Buffer& buffer : planned.buffers) {
    if (!buffer.is_held() || !memory[buffer.number] || memory[buffer.number].bytes() == 0) continue;
    const Array& held = memory[buffer.number];
    const auto* begin = static_cast<const std::byte*>(held.data());
    ranges.push_back({begin, begin + held.bytes(), &buffer});
  }
  const std::less<const std::byte*> before;
  std::sort(ranges.begin(), ranges.end(), [&](const Range& a, const Range& b) { return before(a.begin, b.begin); });
  // Of the ranges so far, `furthest` is the range that ends last. Of the written ranges so far, `written` is the range
  // that ends last.
  const Range* furthest = nullptr;
  const Range* written = nullptr;
  for (const Range& range : ranges) {
    const Range* other = is_written(*range.buffer) ? furthest : written;
    if (other != nullptr && before(range.begin, other->end))
      throw Error("the memory of " + described(planned, *range.buffer) + " is also that of " +
                  described(planned, *other->buffer) + ": what a player writes needs memory of its own");
    if (furthest == nullptr || before(furthest->end, range.end)) furthest = &range;
    if (is_written(*range.buffer) && (written == nullptr || before(written->end, range.end))) written = &range;
  }
}

}  // namespace xtape
