/// The placement of values in buffers. Views become layouts over the buffers of other values. The inputs of a concat
/// are written within its output. Ops overwrite inputs that are not read again. Private to planning.
#pragma once

#include <optional>
#include <vector>

#include "player/plan/plan.hpp"

namespace xtape {

/// Where a value is stored: a layout (offset in elements) over a buffer.
struct Placement {
  int buffer = -1;
  Layout layout;
  explicit operator bool() const { return buffer >= 0; }
};
/// Returns whether two placements have the same elements. Strides of axes of size 1 do not matter.
bool same_elements(const Placement& a, const Placement& b);

/// Returns the number of bytes of a dense array of this type.
std::size_t bytes_of(const ValueType& type);

class Placements {
 public:
  Placements(const Program& program, const Passes& passes, const ExternalBuffers& external);

  const Placement& of(ValueId id) const { return places_[id]; }
  void set(ValueId id, const Placement& placement);
  bool requested(ValueId id) const;  ///< Whether the value is an output of the program.
  /// Returns the last node that reads a value, directly or through views. If the value is an output, returns the number
  /// of nodes.
  std::int32_t last_use(ValueId id) const { return last_[id]; }
  /// Places a value in a new dense buffer.
  Placement make(ValueId id);
  /// Creates a dense buffer for a copy of a value. `kind` places the buffer in the arena or gives it its own memory
  /// (`output`).
  Placement make_copy_of(ValueId id, BufferKind kind);
  int make_buffer(ValueId of, Buffer::Role role, BufferKind kind, std::size_t bytes);
  /// Creates a buffer for item `number` of the caller's memory (ExternalBuffers).
  int make_external(int number);
  /// Returns the caller's memory of output `k`.
  const Placement& external_output(std::size_t k) const { return external_outputs_[k]; }
  /// Returns the buffer into which a buffer was merged, or the buffer itself if it was not merged.
  int resolved(int buffer) const;
  /// Places output 0 of the node over one of its inputs, if this is allowed. Returns the index of the input, or -1.
  int place_over_input(std::int32_t index);

  std::vector<Buffer> buffers;
  std::vector<Array> memory;  ///< PlannedProgram::memory

 private:
  void find_last_uses();
  void place_external(const ExternalBuffers& external);
  void place_backwards();
  void place_parts(std::int32_t index);
  void place_view_input(std::int32_t index);
  void find_copied_views();
  bool takes_place(ValueId id, const Layout& layout) const;
  bool takes_parts(ValueId id, const Layout& layout) const;
  bool may_overwrite(std::int32_t index, std::size_t input, const ValueType& output) const;

  const Program& program_;
  const Passes& passes_;
  ValueTable<Placement> places_;
  ValueTable<std::int32_t> last_;
  ValueTable<bool> requested_;
  std::vector<bool> copied_view_;  // per node: whether it is a view that strides over a dense array cannot express
  std::vector<std::int32_t> buffer_last_;  // per buffer: the last node that reads a value in it
  std::vector<int> merged_into_;
  std::vector<Placement> external_outputs_;
  std::vector<std::size_t> overwritable_;  // inputs of one node; reused to save allocations
};

/// Sets `inputs` to the inputs of a node that its op can overwrite with output 0. Considers only the op. Layouts and
/// later uses can forbid some of these inputs.
void find_overwritable(const Node& node, std::vector<std::size_t>& inputs);

}  // namespace xtape
