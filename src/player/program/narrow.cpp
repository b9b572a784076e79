// Handles narrow arrays, which have the storage dtypes bfloat16, float16, int8 and block formats. Kernels read such
// arrays directly if they can. Otherwise casts widen them.
#include <algorithm>

#include "kernels/elements/scalar.hpp"
#include "ops/recording/op_helpers.hpp"
#include "player/program/passes.hpp"
#include "xtape/ops.hpp"

namespace xtape {

namespace {
/// Returns whether the player must cast what the node reads or writes.
bool must_widen(const Program& program, const Node& node) {
  if (node.op->is_source() || runs_on_any_dtype(*node.op)) return false;
  return std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId id) { return is_narrow(program.type(id).dtype); }) ||
         std::any_of(node.outputs.begin(), node.outputs.end(),
                     [](const ValueType& type) { return is_narrow(type.dtype); });
}

/// Returns `attributes` for a call whose results are computed in a wider dtype.
Attributes widened(const Attributes& attributes) {
  Attributes wide = attributes;
  for (const auto& [name, value] : attributes.items())
    if (const auto* dtype = std::get_if<Dtype>(&value)) wide.set(name, computed_in(*dtype));
  return wide;
}

/// Returns the narrow array from which `var` is cast to a wider dtype, or an empty var if there is none.
Var narrow_source(const Var& var) {
  const Node& node = var.node();
  if (!node.op->lowering.dtypes.casts || is_narrow(node.outputs[0].dtype)) return {};
  const Var source = var.tape().var(node.inputs[0]);
  return is_narrow(source.dtype()) ? source : Var();
}

/// Returns whether the op only moves elements of input 0.
bool moves(const Op& op) {
  return op.is_view() || (op.lowering.dtypes.any && op.lowering.cost.picks);
}

/// Returns whether the node can read `source` in place of its input 0. Kernels read no views of blocks.
bool can_move(const Node& node, const Vars& inputs, const Var& source) {
  if (!is_block(source.dtype())) return true;
  if (!node.op->is_view() && source.node().op->is_view()) return false;
  OpCall call{{node.attributes}, *node.op};
  for (const Var& input : inputs) call.inputs.push_back(input.type());
  call.inputs[0] = source.type();
  call.outputs = node.outputs;
  return reads_blocks(call);
}

/// Looks for an input that is a product of an array and its scale (Op::Algebra::scales). Records the call with the
/// unscaled array as this input, and scales the result instead. Returns an empty var if there is no such input.
Var scaled_later(const Node& node, const Vars& inputs) {
  for (std::size_t k = 0; k < inputs.size() && node.op->algebra.scaled; ++k) {
    const Node& product = inputs[k].node();
    if (!product.op->algebra.scales) continue;
    const Tape tape = inputs[k].tape();
    const Var scale = tape.var(product.inputs[1]);
    if (scale.rank() != inputs[k].rank()) continue;
    Vars unscaled = inputs;
    unscaled[k] = cast(tape.var(product.inputs[0]), inputs[k].dtype());
    const Var result = node.op->algebra.scaled(node, unscaled, k, scale);
    if (!result.empty()) return result;
  }
  return {};
}

/// Rewrites each node for which record(node, inputs) returns a var.
template <class Record>
void rewrite(Program& program, const Record& record) {
  Rewriter rewriter(program);
  for (const std::int32_t index : program.order) {
    const Node& node = program.node(index);
    const auto in_site = rewriter.tape().in_site(node.site);
    if (const Var fresh = record(node, rewriter.vars(node.inputs)); !fresh.empty()) {
      rewriter.replace({index, 0}, fresh);
      rewriter.close(index);
    } else {
      rewriter.keep(index);
    }
  }
  rewriter.finish();
}

/// Moves narrow elements before they are cast.
void postpone_casts(Program& program, bool blocks) {
  rewrite(program, [blocks](const Node& node, const Vars& inputs) -> Var {
    if (!moves(*node.op)) return {};
    const Var source = narrow_source(inputs[0]);
    if (source.empty() || (is_block(source.dtype()) && !blocks) || !can_move(node, inputs, source)) return {};
    Vars moved = inputs;
    moved[0] = source;
    return cast(record_call(source.tape(), *node.op, moved, node.attributes)[0], node.outputs[0].dtype);
  });
}

/// The values that only products read. Products round these factors to bfloat16.
class Factors {
 public:
  explicit Factors(const Program& program) : program_(program), users_(program) {}

  /// Returns whether an op computes the value and a smaller buffer is worthwhile.
  bool stores(ValueId id) const {
    constexpr std::int64_t worth_it = 1 << 14;  // elements
    const Op& op = *program_.node(id.node).op;
    const ValueType& type = program_.type(id);
    return type.dtype == Dtype::float32 && count_of(type.shape) >= worth_it && !op.is_source() && !op.is_view() &&
           !op.lowering.dtypes.casts && only_factor(id);
  }

 private:
  bool only_factor(ValueId id) const {
    const auto readers = users_.of(id);
    const auto& outputs = program_.outputs;
    return !readers.empty() && std::find(outputs.begin(), outputs.end(), id) == outputs.end() &&
           std::all_of(readers.begin(), readers.end(), [&](std::int32_t reader) { return is_factor_of(reader, id); });
  }
  /// Returns whether node `reader` reads the value only as a factor, or is a view that only such nodes read.
  bool is_factor_of(std::int32_t reader, ValueId id) const {
    const Node& node = program_.node(reader);
    if (node.op->is_view()) return only_factor({reader, 0});
    const auto& widens = node.op->lowering.dtypes.widens;
    for (std::size_t k = 0; k < node.inputs.size(); ++k)
      if (node.inputs[k] == id && std::find(widens.begin(), widens.end(), static_cast<int>(k)) == widens.end())
        return false;
    return true;
  }

  const Program& program_;
  Users users_;
};

/// If `id` is a narrow value cast to float32, returns the narrow value. Otherwise returns `id`.
ValueId before_widening(const Program& program, ValueId id) {
  const Node& node = program.node(id.node);
  if (!node.op->lowering.dtypes.casts || node.outputs[0].dtype != Dtype::float32) return id;
  return is_narrow(program.type(node.inputs[0]).dtype) ? node.inputs[0] : id;
}
}  // namespace

bool has_narrow(const Program& program) {
  for (const std::int32_t index : program.order)
    for (const ValueType& type : program.node(index).outputs)
      if (is_narrow(type.dtype)) return true;
  return false;
}

void postpone_pass(Program& program, bool blocks) {
  rewrite(program, [](const Node& node, const Vars& inputs) { return scaled_later(node, inputs); });
  postpone_casts(program, blocks);
}

void widen_pass(Program& program) {
  Rewriter rewriter(program);
  for (const std::int32_t index : program.order) {
    const Node& node = program.node(index);
    if (!must_widen(program, node)) {
      rewriter.keep(index);
      continue;
    }
    const auto in_site = rewriter.tape().in_site(node.site);
    Vars inputs = rewriter.vars(node.inputs);
    for (Var& input : inputs) input = cast(input, computed_in(input.dtype()));
    const Vars outputs = record_call(rewriter.tape(), *node.op, inputs, widened(node.attributes), node.body);
    for (std::size_t k = 0; k < outputs.size(); ++k)
      rewriter.replace({index, static_cast<std::int32_t>(k)}, cast(outputs[k], node.outputs[k].dtype));
    rewriter.close(index);
  }
  rewriter.finish();
}

void store_factors_pass(Program& program) {
  const Factors factors(program);
  Rewriter rewriter(program);
  for (const std::int32_t index : program.order) {
    rewriter.keep(index);
    const auto in_site = rewriter.tape().in_site(program.node(index).site);
    for (std::size_t k = 0; k < program.node(index).outputs.size(); ++k)
      if (const ValueId id{index, static_cast<std::int32_t>(k)}; factors.stores(id))
        rewriter.replace(id, cast(cast(program.var(id), Dtype::bfloat16), Dtype::float32));
    rewriter.close(index);
  }
  rewriter.finish();
  postpone_casts(program, true);
}

void read_narrow_pass(Program& program, bool blocks) {
  Rewriter rewriter(program);
  for (const std::int32_t index : program.order) {
    Node& node = editable(program.tape, index);
    const Lowering::Dtypes& dtypes = node.op->lowering.dtypes;
    for (const int input : dtypes.widens)
      if (const auto k = static_cast<std::size_t>(input); k < node.inputs.size())
        if (const ValueId id = before_widening(program, node.inputs[k]);
            (blocks && dtypes.blocks) || !is_block(program.type(id).dtype))
          node.inputs[k] = id;
    rewriter.keep(index);
  }
  rewriter.finish();
}

}  // namespace xtape
