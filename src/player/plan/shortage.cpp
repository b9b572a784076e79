#include "player/plan/budget.hpp"
#include "player/plan/memory.hpp"

namespace xtape {

namespace {
/// The limit of bytes of an operand: 2^47, the user address space of current processors.
constexpr std::int64_t most_counted = std::int64_t{1} << 47;

std::string at_place(const Site& site) {
  const std::string place = to_string(site);
  return place.empty() ? "" : " at " + place;
}

std::string can_have() {
  return "this process can use " + bytes_text(memory_limit());
}

/// Describes a node for messages: "tanh -> float32 (2, 3) at …".
std::string described_node(const Node& node, const ValueType& type) {
  return step_name(node) + (node.name.empty() ? "" : " '" + node.name + "'") + " -> " + to_string(type) +
         at_place(node.site);
}

bool writes(const PlannedProgram& planned, const PlannedStep& step, int buffer) {
  const auto out = planned.out(step);
  return step.scratch == buffer ||
         std::any_of(out.begin(), out.end(), [&](const BufferRef& ref) { return ref.buffer == buffer; });
}

/// Returns whether the plan itself allocates the memory of the buffer.
bool is_own(const Buffer& buffer) {
  return buffer.first >= 0 &&
         (buffer.kind == BufferKind::arena || buffer.kind == BufferKind::output || buffer.kind == BufferKind::input);
}

/// Returns the part of a message that names the largest buffer of the plan.
std::string largest_of(const PlannedProgram& planned) {
  const Buffer* largest = nullptr;
  for (const Buffer& buffer : planned.buffers)
    if (is_own(buffer) && (largest == nullptr || buffer.bytes > largest->bytes)) largest = &buffer;
  if (largest == nullptr) return "";
  const auto number = static_cast<int>(largest - planned.buffers.data());
  std::string text = "; its largest buffer, " + bytes_text(largest->bytes) + ", is that of ";
  for (const PlannedStep& step : planned.steps)
    if (writes(planned, step, number))
      return text + (largest->role == Buffer::Role::scratch ? "scratch of " : "") + described(planned, step);
  return text + planned.name_of(*largest);
}
}  // namespace

std::string described(const PlannedProgram& planned, const PlannedStep& step) {
  return planned.name_of(step) + " -> " + planned.types_text(step) + at_place(planned.site_of(step));
}

void require_memory(const Node& node, const ValueType& type, std::size_t most) {
  const auto bytes = static_cast<std::size_t>(checked_bytes(type.dtype, type.shape));
  if (bytes > most)
    throw OutOfMemory("out of memory: " + described_node(node, type) + " takes " + bytes_text(bytes) + ", " +
                      can_have());
}

void require_countable(const Node& node, const ValueType& type) {
  if (checked_bytes(type.dtype, type.shape) > most_counted)
    throw OutOfMemory("out of memory: " + step_name(node) + at_place(node.site) + " would read " + to_string(type) +
                      ", " + bytes_text(static_cast<std::size_t>(checked_bytes(type.dtype, type.shape))) +
                      ", and at most " + bytes_text(most_counted) + " are allowed");
}

void require_memory(const PlannedProgram& planned) {
  std::size_t total = planned.arena_bytes;
  bool fits = true;
  for (const Buffer& buffer : planned.buffers)
    if (is_own(buffer) && buffer.kind != BufferKind::arena)
      fits = fits && !__builtin_add_overflow(total, buffer.bytes, &total);
  if (fits && total <= memory_limit()) return;
  out_of_memory(planned, "the plan needs " + (fits ? bytes_text(total) : "more than 2^64 bytes") + ", " + can_have());
}

void out_of_memory(const PlannedProgram& planned, const std::string& why) {
  const std::string start = "out of memory: ";
  throw OutOfMemory(start + (why.compare(0, start.size(), start) == 0 ? why.substr(start.size()) : why) +
                    largest_of(planned));
}

}  // namespace xtape
