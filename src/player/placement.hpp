/// Which value lies where: views become layouts over other values' buffers, parts are written where the whole will
/// stand, and ops write over inputs that nobody reads again. Private to planning.
#pragma once

#include <optional>
#include <vector>

#include "plan.hpp"

namespace xtape {

/// A value's place: a layout (offset in elements) over a buffer.
struct Placement {
  int buffer = -1;
  Layout layout;
  explicit operator bool() const { return buffer >= 0; }
};
/// Whether two placements of one shape are the same elements: along an axis of size 1 any stride will do.
bool same_elements(const Placement& a, const Placement& b);

class Placements {
 public:
  Placements(const Program& program, const Passes& passes, const ExternalBuffers& external);

  const Placement& of(ValueId id) const {
    return places_[static_cast<std::size_t>(id.node)][static_cast<std::size_t>(id.output)];
  }
  void set(ValueId id, const Placement& placement);
  bool requested(ValueId id) const;
  /// The last node that reads a value, through views; the number of nodes for outputs.
  std::int32_t last_use(ValueId id) const {
    return last_[static_cast<std::size_t>(id.node)][static_cast<std::size_t>(id.output)];
  }
  /// A new dense buffer for a value.
  Placement make(ValueId id);
  /// A new buffer for a copy that one step makes and others up to node `until` read.
  Placement make_copy_of(const ValueType& type, const std::string& name, std::int32_t until);
  int make_buffer(const std::string& name, BufferKind kind, std::size_t bytes);
  /// A buffer for memory of the caller's.
  int make_external(const std::string& name, int number);
  /// Where output `k` has to go.
  const Placement& outside_output(std::size_t k) const { return external_outputs_[k]; }
  /// The buffer that a buffer has become, after merging.
  int resolved(int buffer) const;
  /// The input whose buffer output 0 of the node takes, or -1; the placement is set.
  int place_over_input(std::int32_t index);

  std::vector<Buffer> buffers;

 private:
  void find_last_uses();
  void place_external(const ExternalBuffers& external);
  void place_backwards();
  void place_parts(std::int32_t index);
  void place_view_input(std::int32_t index);
  void find_copied_views();
  bool takes_place(ValueId id, const Layout& layout) const;
  bool may_overwrite(std::int32_t index, std::size_t input, const ValueType& output) const;
  std::vector<std::size_t> overwritable(const Node& node) const;

  const Program& program_;
  const Passes& passes_;
  std::vector<std::vector<Placement>> places_;
  std::vector<std::vector<std::int32_t>> last_;
  std::vector<std::vector<bool>> requested_;
  std::vector<bool> copied_view_;          // per node: a view that no strides over a dense array could say
  std::vector<std::int32_t> buffer_last_;  // per buffer: the last node that reads any value in it
  std::vector<int> merged_into_;
  std::vector<Placement> external_outputs_;
};

/// The call of a node, as its row sees it.
Call call_of(const Program& program, const Node& node);

}  // namespace xtape
