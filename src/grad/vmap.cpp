// vmap: records the nodes of a function of one example as nodes for all examples.
#include "xtape/vmap.hpp"

#include <algorithm>

#include "ops/recording/op_helpers.hpp"
#include "tape/calls.hpp"
#include "tape/graph.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"

namespace xtape {

namespace {
/// Records nodes of one tape on another tape for a batch. Values that are the same for all examples stay unchanged. All
/// other values are mapped, with the batch as axis 0.
class Batch {
 public:
  /// `outside` contains the draws outside of the function. A draw that repeats one of them is the same for all
  /// examples.
  Batch(const Tape& from, const Tape& to, std::int64_t size, Randomness randomness, const DrawnKeys& outside)
      : from_(from),
        to_(to),
        copier_(from, to),
        mapped_(from, false),
        size_(size),
        randomness_(randomness),
        outside_(outside) {}

  void set(ValueId old, const Var& now, bool mapped) {
    copier_.replace(old, now.id());
    mapped_[old] = mapped;
  }
  /// Records the nodes that `values` need.
  void record(const std::vector<ValueId>& values) {
    const std::vector<bool> needed = needed_by(from_, values);
    for (std::size_t i = 0; i < needed.size(); ++i)
      if (needed[i] && !copier_.known({static_cast<std::int32_t>(i), 0})) visit(static_cast<std::int32_t>(i));
  }
  /// Returns a value with the batch as axis 0.
  Var whole(ValueId old) const {
    const Var now = to_.var(copier_.now(old));
    if (mapped_[old]) return now;
    Shape shape = now.shape();
    shape.insert(0, size_);
    return broadcast_to(now, shape);
  }

 private:
  void visit(std::int32_t index) {
    const Node& node = node_of(from_, index);
    const auto in_site = to_.in_site(node.site);
    const bool draws_per_example = randomness_ == Randomness::different && draws_anew(node);
    const auto is_mapped = [&](ValueId id) { return mapped_[id]; };
    if (!draws_per_example && std::ranges::none_of(node.inputs, is_mapped)) {
      copier_.copy(index);
      return;
    }
    BatchCall call{{node.attributes},
                   *node.op,
                   node,
                   to_,
                   {},
                   {},
                   size_,
                   [this](const Tape& body, const std::vector<bool>& mapped) { return of_body(body, mapped); }};
    // A draw must differ between the examples even if its inputs are the same for all of them. Its inputs are then
    // expanded to the whole batch.
    const bool spread = !node.body && std::ranges::none_of(node.inputs, is_mapped);
    for (const ValueId& input : node.inputs) {
      call.inputs.push_back(spread ? whole(input) : to_.var(copier_.now(input)));
      call.mapped.push_back(spread || mapped_[input]);
    }
    const Vars made = recorded(call);
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      Shape shape = node.outputs[k].shape;
      shape.insert(0, size_);
      const ValueType type{node.outputs[k].dtype, shape};
      if (k >= made.size() || made[k].type() != type)
        throw Error(node.op->name + ": its batching rule gave " +
                    (k < made.size() ? to_string(made[k].type()) : "no var") + " for output " + std::to_string(k) +
                    ", which must be " + to_string(type));
      set({index, static_cast<std::int32_t>(k)}, made[k], true);
    }
  }

  /// Returns whether the node, or a node in its body, draws random numbers without repeating a draw from outside of the
  /// function.
  bool draws_anew(const Node& node) const {
    if (node.op->random) return !outside_.repeats(node);
    for (std::size_t i = 0; node.body && i < node.body->size(); ++i)
      if (draws_anew(node.body->node(i))) return true;
    return false;
  }

  Vars recorded(const BatchCall& call) {
    const Op& op = call.op;
    const bool shares_draws = op.random && (randomness_ == Randomness::same || outside_.repeats(call.node));
    if (!shares_draws) {
      if (op.batch)
        if (Vars made = op.batch(call); !made.empty()) return made;
      if (op.random && call.inputs.empty() && call.attributes.find("shape") != nullptr)
        return {with_first_axis(to_, call.node, size_)};
      if (!op.batch && op.lowering.tile) return batch_elementwise(call);
    }
    if (!op.expand)
      throw Error("vmap: " + op.name +
                  (shares_draws ? " cannot draw the same numbers for all examples"
                                : " has neither a batching rule nor an expansion, so it cannot be mapped"));
    return through_expansion(call);
  }

  /// Maps the expansion of the call of one example.
  Vars through_expansion(const BatchCall& call) {
    Tape apart = to_.blank();
    const auto in_site = apart.in_site(call.node.site);
    Vars inputs;
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
      const Node& given = call.inputs[i].node();
      Shape shape = call.inputs[i].shape();
      if (call.mapped[i]) shape.erase(0);
      inputs.push_back(is_literal(given) ? apart.constant(given.storage)
                                         : apart.input("in" + std::to_string(i), shape, call.inputs[i].dtype()));
    }
    std::vector<ValueId> outputs;
    for (const Var& output : expansion(call.node, apart, inputs)) outputs.push_back(output.id());
    Batch inner(apart, to_, size_, randomness_, outside_);
    for (std::size_t i = 0; i < inputs.size(); ++i) inner.set(inputs[i].id(), call.inputs[i], call.mapped[i]);
    inner.record(outputs);
    Vars made;
    for (const ValueId output : outputs) made.push_back(inner.whole(output));
    return made;
  }

  Tape of_body(const Tape& body, const std::vector<bool>& mapped) const {
    Tape to = body.blank();
    Batch inner(body, to, size_, randomness_, outside_);
    const std::vector<ValueId> inputs = body.inputs();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      ValueType type = body.type(inputs[i]);
      if (mapped[i]) type.shape.insert(0, size_);
      inner.set(inputs[i], to.input("in" + std::to_string(i), type.shape, type.dtype), mapped[i]);
    }
    inner.record(body.results());
    std::vector<ValueId> results;
    for (const ValueId& id : body.results()) results.push_back(inner.whole(id).id());
    to.set_results(results);
    return to;
  }

  Tape from_, to_;
  Copier copier_;
  ValueTable<bool> mapped_;
  std::int64_t size_;
  Randomness randomness_;
  const DrawnKeys& outside_;
};

Vars no_gradient_inside(const GradientCall&) {
  throw Error(
      "vmap: the function is only being recorded, so its examples are not yet part of the batch; differentiate "
      "the results by the batch outside the function");
}
Kernel no_kernel_inside(const KernelCall&) {
  throw Error("vmap: the function is only being recorded, so what it is given has no value yet; play the results");
}

/// Stands for one example of a batch while the function is recorded.
const Op& example_op() {
  static const Op entry{
      .name = "example",
      .doc = "One example of a batch.",
      .inputs = {{"batch", Accept::any}},
      .shape =
          +[](const OpCall& call) {
            Shape shape = call.shape(0);
            shape.erase(0);
            return std::vector<ValueType>{{call.dtype(0), shape}};
          },
      .gradient = no_gradient_inside,
      .lowering = {.kernel = no_kernel_inside, .dtypes = {.blocks = +[](const OpCall&) { return true; }}}};
  return entry;
}

/// The inputs with the batch as axis 0, and a flag for each input that is mapped.
struct Examples {
  Vars inputs;
  std::vector<bool> mapped;
  std::int64_t size = -1;
};

Examples examples(Tape tape, const Vars& inputs, const VmapOptions& options) {
  if (!options.in_axes.empty() && options.in_axes.size() != inputs.size())
    throw Error("vmap: got " + std::to_string(options.in_axes.size()) + " in_axes for " +
                std::to_string(inputs.size()) + " inputs");
  Examples found;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Var& x = inputs[i];
    if (x.tape() != tape) throw HandleError("vmap: its inputs belong to different tapes");
    const std::optional<std::int64_t> axis = options.in_axes.empty() ? 0 : options.in_axes[i];
    found.mapped.push_back(axis.has_value());
    found.inputs.push_back(x);
    if (!axis) continue;
    if (*axis >= static_cast<std::int64_t>(x.rank()) || *axis < -static_cast<std::int64_t>(x.rank()))
      throw ShapeError("vmap: input " + std::to_string(i) + " is " + to_string(x.type()) + ", which has no axis " +
                       std::to_string(*axis));
    if (!tape.past_of(x).empty())
      throw Error("vmap: input " + std::to_string(i) + " has a past, whose states cannot be mapped");
    if (found.size >= 0 && x.size(*axis) != found.size)
      throw ShapeError("vmap: the mapped inputs must have equally many examples, got " + std::to_string(found.size) +
                       " and, in " + to_string(x.type()) + ", " + std::to_string(x.size(*axis)));
    found.size = x.size(*axis);
    found.inputs[i] = axis_to_first(x, *axis);
  }
  if (found.size < 0) throw Error("vmap: needs at least one mapped input");
  return found;
}

Vars record_vmap(Tape tape, const std::function<Vars(const Vars&)>& function, const Vars& inputs,
                 const VmapOptions& options) {
  const Examples given = examples(tape, inputs, options);
  const std::size_t size = tape.size(), states = tape.states().size();
  Vars arguments = given.inputs;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (given.mapped[i]) {
      const auto in_site = tape.in_site(given.inputs[i].node().site);  // sums of the input's cotangents get this site
      arguments[i] = record_call(tape, example_op(), {given.inputs[i]}, {})[0];
    }
  const auto call = [&] {
    const auto out_of_call = tape.out_of_call();  // the nodes get the source locations of the function's own calls
    return function(arguments);
  };
  const Vars results = call();
  if (results.empty()) throw Error("vmap: the function gives no result");
  if (!options.out_axes.empty() && options.out_axes.size() != results.size())
    throw Error("vmap: got " + std::to_string(options.out_axes.size()) + " out_axes for " +
                std::to_string(results.size()) + " results");
  for (const Var& result : results)
    if (result.tape() != tape) throw HandleError("vmap: the function returned a var of another tape");
  if (tape.states().size() != states) throw Error("vmap: the function calls cache, whose state cannot be mapped");

  const auto [body, outer] = tape.enclose(size, results);
  const DrawnKeys drawn(tape);
  Batch batch(*body, tape, given.size, options.randomness, drawn);
  const std::vector<ValueId> entered = body->inputs();
  std::unordered_map<ValueId, Var> outside;
  for (std::size_t i = 0; i < entered.size(); ++i) {
    batch.set(entered[i], outer[i], false);
    outside.emplace(entered[i], outer[i]);
  }
  for (std::size_t i = 0; i < body->size(); ++i)
    if (const Node& node = body->node(i); node.op == &example_op())
      batch.set({static_cast<std::int32_t>(i), 0}, outside.at(node.inputs[0]), true);
  batch.record(body->results());
  Vars mapped;
  for (std::size_t k = 0; k < results.size(); ++k)
    mapped.push_back(
        first_axis_to(batch.whole(body->results()[k]), options.out_axes.empty() ? 0 : options.out_axes[k]));
  return mapped;
}
}  // namespace

Vars vmap(const std::function<Vars(const Vars&)>& function, const Vars& inputs, const VmapOptions& options,
          Caller caller) {
  if (!function) throw Error("vmap: the function is empty");
  if (inputs.empty()) throw Error("vmap: needs at least one input");
  Tape tape = inputs[0].tape();
  return all_or_nothing(tape, nullptr, caller, [&] { return record_vmap(tape, function, inputs, options); });
}

}  // namespace xtape
