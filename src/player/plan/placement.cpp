#include "player/plan/placement.hpp"

#include <algorithm>

#include "player/program/passes.hpp"

namespace xtape {

bool same_elements(const Placement& a, const Placement& b) {
  if (a.buffer != b.buffer || a.layout.shape != b.layout.shape || a.layout.offset != b.layout.offset) return false;
  for (std::size_t i = 0; i < a.layout.shape.size(); ++i)
    if (a.layout.shape[i] != 1 && a.layout.strides[i] != b.layout.strides[i]) return false;
  return true;
}

std::size_t bytes_of(const ValueType& type) {
  return static_cast<std::size_t>(bytes_of(type.dtype, count_of(type.shape)));
}

Placements::Placements(const Program& program, const Passes& passes, const ExternalBuffers& external)
    : program_(program),
      passes_(passes),
      places_(program.tape, {}),
      last_(program.tape, -1),
      requested_(program.tape, false) {
  for (const ValueId& id : program.outputs) requested_[id] = true;
  find_last_uses();
  place_external(external);
  if (passes.views) place_backwards();
}

/// Places outputs in the caller's memory if their producers can write there directly.
void Placements::place_external(const ExternalBuffers& external) {
  for (std::size_t k = 0; k < external.outputs.size(); ++k) {
    const int number = static_cast<int>(external.inputs.size() + k);
    external_outputs_.push_back({make_external(number), external.outputs[k]});
    const ValueId id = program_.outputs[k];
    const bool carried = std::any_of(program_.carries.begin(), program_.carries.end(),
                                     [&](const auto& carry) { return carry.second == id; });
    const Op& op = *program_.node(id.node).op;
    const bool writes_there =
        !op.is_source() && !op.is_view() && (op.lowering.layouts.any_out || external.outputs[k].contiguous());
    if (passes_.views && writes_there && !carried && !of(id)) set(id, external_outputs_.back());
  }
}

bool Placements::requested(ValueId id) const {
  return requested_[id];
}

void Placements::find_last_uses() {
  for (auto index = static_cast<std::int32_t>(program_.tape.size()); index-- > 0;) {
    const Node& node = program_.node(index);
    for (std::int32_t k = 0; k < static_cast<std::int32_t>(node.outputs.size()); ++k) {
      const ValueId id{index, k};
      last_[id] = requested_[id] ? static_cast<std::int32_t>(program_.tape.size()) : std::max(last_[id], index);
    }
    // views and ops with Lowering::Layouts::parts share memory with their inputs, so their readers also read these
    // inputs
    const bool passes_on = node.op->is_view() || node.op->lowering.layouts.parts;
    const std::int32_t use = passes_on ? std::max(index, last_[{index, 0}]) : index;
    for (const ValueId& id : node.inputs) last_[id] = std::max(last_[id], use);
  }
}

int Placements::make_buffer(ValueId of, Buffer::Role role, BufferKind kind, std::size_t bytes) {
  Buffer buffer;
  buffer.of = of;
  buffer.role = role;
  buffer.kind = kind;
  buffer.bytes = bytes;
  if (kind != BufferKind::arena && kind != BufferKind::external) {
    buffer.number = static_cast<int>(memory.size());
    memory.emplace_back();
  }
  buffers.push_back(buffer);
  buffer_last_.push_back(-1);
  merged_into_.push_back(-1);
  return static_cast<int>(buffers.size()) - 1;
}

int Placements::make_external(int number) {
  const int buffer = make_buffer({}, Buffer::Role::value, BufferKind::external, 0);
  buffers.back().number = number;
  return buffer;
}

int Placements::resolved(int buffer) const {
  while (merged_into_[buffer] >= 0) buffer = merged_into_[buffer];
  return buffer;
}

void Placements::set(ValueId id, const Placement& placement) {
  places_[id] = placement;
  std::int32_t& last = buffer_last_[resolved(placement.buffer)];
  last = std::max(last, last_use(id));
}

Placement Placements::make(ValueId id) {
  const ValueType& type = program_.type(id);
  const BufferKind kind = requested(id) ? BufferKind::output : BufferKind::arena;
  const int buffer = make_buffer(id, Buffer::Role::value, kind, bytes_of(type));
  const Placement placement{buffer, Layout::dense(type.shape)};
  set(id, placement);
  return placement;
}

Placement Placements::make_copy_of(ValueId id, BufferKind kind) {
  const ValueType& type = program_.type(id);
  const int buffer = make_buffer(id, Buffer::Role::copy, kind, bytes_of(type));
  buffer_last_[buffer] = last_use(id);
  return {buffer, Layout::dense(type.shape)};
}

namespace {
/// Returns whether the elements along the last axis are adjacent. If they are not, a single transposing copy of a dense
/// array is faster than scattered writes.
bool has_rows(const Layout& layout) {
  for (std::size_t axis = layout.shape.size(); axis-- > 0;)
    if (layout.shape[axis] > 1) return layout.strides[axis] == 1;
  return true;
}
}  // namespace

/// Returns whether the producer of a value without a placement can write the value with this layout.
bool Placements::takes_place(ValueId id, const Layout& layout) const {
  const Node& producer = program_.node(id.node);
  if (of(id) || requested(id) || producer.op->is_source()) return false;
  return producer.op->is_view() || layout.contiguous() || (producer.op->lowering.layouts.any_out && has_rows(layout));
}

/// Goes from the last node to the first, because an output must be placed before the inputs that are written within it.
void Placements::place_backwards() {
  find_copied_views();
  for (auto index = static_cast<std::int32_t>(program_.tape.size()); index-- > 0;) {
    const Node& node = program_.node(index);
    if (node.op->lowering.layouts.parts) place_parts(index);
    if (node.op->is_view() && node.op->lowering.view.input) place_view_input(index);
  }
}

/// Places the inputs of a concat or stack within its output.
void Placements::place_parts(std::int32_t index) {
  const Node& node = program_.node(index);
  const Placement whole = of({index, 0}) ? of({index, 0}) : make({index, 0});
  const std::vector<Layout> parts = node.op->lowering.layouts.parts(call_of(program_, node), whole.layout);
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (takes_place(node.inputs[i], parts[i])) set(node.inputs[i], {whole.buffer, parts[i]});
}

/// Finds the views that need a copy, assuming that other values are dense. A view of a copied view is a view of the
/// copy.
void Placements::find_copied_views() {
  copied_view_.assign(program_.tape.size(), false);
  std::vector<Layout> layouts;  // the layouts of the views
  // per node: the index of its layout in `layouts`, if the node is a view
  std::vector<std::size_t> number(program_.tape.size());
  for (std::size_t i = 0; i < program_.tape.size(); ++i) {
    const Node& node = program_.node(static_cast<std::int32_t>(i));
    if (!node.op->is_view() || !node.op->lowering.view) continue;
    const ValueId input = node.inputs[0];
    const bool of_view = program_.node(input.node).op->is_view();
    const OpCall call = call_of(program_, node);
    const std::optional<Layout> layout =
        node.op->lowering.view.output(call, of_view ? layouts[number[input.node]] : Layout::dense(call.shape(0)));
    copied_view_[i] = !layout;
    number[i] = layouts.size();
    layouts.push_back(layout ? *layout : Layout::dense(node.outputs[0].shape));
  }
}

/// If strides over a dense array cannot express the view, places the array with a layout over which strides can express
/// the view.
void Placements::place_view_input(std::int32_t index) {
  const Node& node = program_.node(index);
  const ValueId input = node.inputs[0];
  const ValueId output{index, 0};
  if (!of(output) && !requested(output) && !copied_view_[index]) return;
  const OpCall call = call_of(program_, node);
  if (!of(output)) {
    const std::optional<Layout> dense = node.op->lowering.view.input(call, Layout::dense(node.outputs[0].shape));
    if (!dense || !takes_place(input, *dense) || !takes_parts(input, *dense)) return;
    make(output);
  }
  const std::optional<Layout> layout = node.op->lowering.view.input(call, of(output).layout);
  if (layout && takes_place(input, *layout) && takes_parts(input, *layout)) set(input, {of(output).buffer, *layout});
}

/// Returns whether the parts of a value (Lowering::Layouts::parts) allow this layout. They do not if the layout has
/// gaps and no part can be written within it. Parts can be written into a dense array, and one copy of this array is
/// faster than a copy of each part with gaps.
bool Placements::takes_parts(ValueId id, const Layout& layout) const {
  const Node& producer = program_.node(id.node);
  if (!producer.op->lowering.layouts.parts || layout.contiguous()) return true;
  const std::vector<Layout> parts = producer.op->lowering.layouts.parts(call_of(program_, producer), layout);
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (takes_place(producer.inputs[i], parts[i])) return true;
  return false;
}

// Over inputs -------------------------------------------------------------------------------------------------------

namespace {
/// For fused elementwise ops, finds the inputs that the first result may overwrite tile by tile. Only inputs that no op
/// reads after the result is written may be overwritten.
void find_overwritable_in_fused(const Tape& body, std::vector<std::size_t>& inputs) {
  const std::int32_t writer = body.results()[0].node, size = static_cast<std::int32_t>(body.size());
  const auto& written = node_of(body, writer).outputs;
  if (written.size() > 1) return;  // the op may read inputs after it has written the result
  std::size_t k = 0;
  for (std::int32_t i = 0; i < size; ++i) {
    const Node& node = node_of(body, i);
    if (node.op != &input_op()) continue;
    bool read_later = false;
    for (std::int32_t later = writer + 1; later < size; ++later)
      for (const ValueId& id : node_of(body, later).inputs) read_later |= id.node == i;
    if (!read_later && node.outputs[0].shape == written[0].shape) inputs.push_back(k);
    ++k;
  }
}
}  // namespace

void find_overwritable(const Node& node, std::vector<std::size_t>& inputs) {
  inputs.clear();
  if (node.op->lowering.body.tiles) return find_overwritable_in_fused(*node.body, inputs);
  if (runs_in_tiles(*node.op)) {
    if (node.outputs.size() > 1) return;  // the op may read inputs after it has written the output
    for (std::size_t i = 0; i < node.inputs.size(); ++i) inputs.push_back(i);
  } else {
    for (int i : node.op->lowering.overwrites)
      if (static_cast<std::size_t>(i) < node.inputs.size()) inputs.push_back(static_cast<std::size_t>(i));
  }
}

bool Placements::may_overwrite(std::int32_t index, std::size_t input, const ValueType& output) const {
  const Node& node = program_.node(index);
  const ValueId id = node.inputs[input];
  const Placement& place = of(id);
  const int buffer = resolved(place.buffer);
  const Buffer& held = buffers[buffer];
  const ValueType& type = program_.type(id);
  if (type.shape != output.shape || bytes_of(type) != bytes_of(output)) return false;
  if (held.bytes != bytes_of(type) || held.bytes == 0 || place.layout.offset != 0 || !place.layout.contiguous())
    return false;
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    if (i != input && resolved(of(node.inputs[i]).buffer) == buffer) return false;
  if (buffer_last_[buffer] > index) return false;
  if (held.kind == BufferKind::carry)
    return std::any_of(program_.carries.begin(), program_.carries.end(), [&](const auto& carry) {
      if (carry.second != ValueId{index, 0} || carry.first.node < 0) return false;
      const Placement& state = of(carry.first);  // empty if the input of the carry comes later
      return state && resolved(state.buffer) == buffer;
    });
  return held.kind == BufferKind::arena;
}

int Placements::place_over_input(std::int32_t index) {
  const Node& node = program_.node(index);
  const ValueId output{index, 0};
  const Placement& own = of(output);
  if (own && (!own.layout.contiguous() || own.layout.offset != 0 ||
              buffers[resolved(own.buffer)].bytes != bytes_of(node.outputs[0])))
    return -1;
  find_overwritable(node, overwritable_);
  for (const std::size_t input : overwritable_) {
    if (!may_overwrite(index, input, node.outputs[0])) continue;
    const int taken = resolved(of(node.inputs[input]).buffer);
    const bool carry = buffers[taken].kind == BufferKind::carry;
    if (own && resolved(own.buffer) == taken) return static_cast<int>(input);
    if (own && carry) continue;
    if (!own && (carry || !requested(output))) {
      set(output, {taken, Layout::dense(node.outputs[0].shape)});
    } else {  // the placement of the output is fixed, so move the input there
      const Placement placement = own ? own : make(output);
      const int target = resolved(placement.buffer);
      if (buffer_last_[target] > last_use(output)) continue;
      merged_into_[taken] = target;
    }
    return static_cast<int>(input);
  }
  return -1;
}

}  // namespace xtape
