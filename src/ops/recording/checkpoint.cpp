// checkpoint: a range of nodes becomes a body. Its interior values are computed again when the gradient needs them.
#include "ops/recording/enclosed.hpp"
#include "tape/calls.hpp"
#include "tape/graph.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"

namespace xtape {

namespace {
Kernel no_argument_yet(const KernelCall&) {
  throw Error("the function is only being recorded, so what it is given has no value yet; play the results outside");
}

/// The op that stands for an argument while the function is recorded.
const Op& argument_op() {
  static const Op entry{
      .name = "argument",
      .doc = "An argument of a function that is being recorded.",
      .inputs = {},
      .attributes = {{"dtype", AttributeType::dtype, "The dtype.", std::nullopt},
                     {"shape", AttributeType::integers, "The shape.", std::nullopt}},
      .shape =
          +[](const OpCall& call) {
            const std::vector<std::int64_t>& sizes = call.integers("shape");
            return std::vector<ValueType>{{call.get<Dtype>("dtype"), Shape(sizes.begin(), sizes.end())}};
          },
      .lowering = {.kernel = no_argument_yet}};
  return entry;
}
}  // namespace

Enclosed enclosed(Tape tape, const std::vector<ValueType>& arguments,
                  const std::function<Vars(const Vars&)>& function) {
  const std::size_t size = tape.size();
  Vars given;
  for (const ValueType& type : arguments)
    given.push_back(record_call(
        tape, argument_op(), {},
        {{"dtype", type.dtype}, {"shape", std::vector<std::int64_t>(type.shape.begin(), type.shape.end())}})[0]);
  const auto call = [&] {
    const auto out_of_call = tape.out_of_call();  // the nodes get the source locations of the function's own calls
    return function(given);
  };
  const auto [region, captured] = tape.enclose(size, call());

  auto body = std::make_shared<Tape>(tape.blank());
  const auto enter = [&](const ValueType& type) {
    return body->input("in" + std::to_string(body->size()), type.shape, type.dtype).id();
  };
  Copier copier(*region, *body);
  std::vector<ValueId> places;
  for (const ValueType& type : arguments) places.push_back(enter(type));
  for (const ValueId& id : region->inputs()) copier.replace(id, enter(region->type(id)));
  auto next = places.begin();
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(region->size()); ++i) {
    if (region->node(i).op == &argument_op())
      copier.replace({i, 0}, *next++);
    else if (!copier.known({i, 0}))
      copier.copy(i);
  }
  std::vector<ValueId> results;
  for (const ValueId& id : region->results()) results.push_back(copier.now(id));
  body->set_results(results);
  return {body, captured};
}

bool draws(const Node& node) {
  const Attribute* rate = node.attributes.find("rate");
  const bool never = rate != nullptr && *rate == Attribute{0.0};
  return (node.op->random && !never) || (node.body && draws(*node.body));
}

bool draws(const Tape& tape) {
  for (std::size_t i = 0; i < tape.size(); ++i)
    if (draws(tape.node(i))) return true;
  return false;
}

void require_types(const std::string& what, const Vars& results, const std::vector<ValueType>& types) {
  std::string got, right;
  bool same = results.size() == types.size();
  for (std::size_t i = 0; i < results.size(); ++i) {
    same = same && results[i].type() == types[i];
    got += (i > 0 ? ", " : "") + to_string(results[i].type());
  }
  for (const ValueType& type : types) right += (right.empty() ? "" : ", ") + to_string(type);
  if (!same) throw ShapeError(what + " must give " + right + ", got " + (got.empty() ? "nothing" : got));
}

Tape pullback(const Tape& body, const std::vector<bool>& marked,
              const std::function<Vars(const Vars&, const Vars&, const Vars&)>& grad) {
  Tape tape = body.blank();
  const auto enter = [&](ValueId id) {
    const ValueType type = body.type(id);
    return tape.input("in" + std::to_string(tape.size()), type.shape, type.dtype);
  };
  Vars inputs, wanted, cotangents;
  for (const ValueId& id : body.inputs()) inputs.push_back(enter(id));
  for (const ValueId& id : body.results()) cotangents.push_back(enter(id));
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (marked[i]) wanted.push_back(inputs[i]);
  std::vector<ValueId> results;
  for (const Var& each : grad(inline_body(tape, body, inputs), wanted, cotangents)) results.push_back(each.id());
  tape.set_results(results);
  return tape;
}

const Op& checkpoint_op();

namespace {
/// The gradient is another checkpoint. Its body computes the forward pass again, and then the adjoint of the forward
/// pass.
Vars checkpoint_gradient(const GradientCall& call);
Vars checkpoint_tangent(const TangentCall& call);

Vars batch_checkpoint(const BatchCall& call) {
  const auto body = std::make_shared<Tape>(call.body(*call.node.body, call.mapped));
  return record_call(call.tape, call.op, call.inputs, {}, body);
}

std::vector<ValueType> checkpoint_types(const OpCall& call) {
  if (call.body == nullptr) throw Error("needs a body: record it with xtape::checkpoint(function, inputs)");
  std::vector<ValueType> given, results;
  for (const ValueId& id : call.body->inputs()) given.push_back(call.body->type(id));
  if (given != call.inputs) throw ShapeError("the inputs of its body must have the types of its operands");
  for (const ValueId& id : call.body->results()) results.push_back(call.body->type(id));
  return results;
}
}  // namespace

const Op& checkpoint_op() {
  static const Op entry{
      .name = "checkpoint",
      .doc = R"(Applies a body to the inputs. No value inside the body is kept for the backward pass: the gradient
           contains a copy of the body and computes these values again, with the same random numbers (Chen
           et al., 2016, Training deep nets with sublinear memory cost).)",
      .inputs = {{"xs", Accept::any, Arity::many}},
      .outputs = {"ys"},
      .shape = checkpoint_types,
      .gradient = checkpoint_gradient,
      .batch = batch_checkpoint,
      .expand = +[](const ExpandCall& call) { return inline_body(call.tape, *call.node.body, call.inputs); },
      .derivative = {.tangent = checkpoint_tangent}};
  return entry;
}

namespace {
/// A body that begins with a copy of a checkpoint's body.
class ExtendedBody {
 public:
  explicit ExtendedBody(const Tape& outer) : body_(std::make_shared<Tape>(outer.blank())) {}
  /// Returns a new input of the body for a var of the outer tape.
  Var enter(const Var& var) {
    outer_.push_back(var);
    return body_->input("in" + std::to_string(body_->size()), var.shape(), var.dtype());
  }
  Vars enter(const Vars& vars) {
    Vars inputs;
    for (const Var& var : vars) inputs.push_back(var.empty() ? Var() : enter(var));
    return inputs;
  }
  Vars copy(const Tape& body, const Vars& inputs) { return inline_body(*body_, body, inputs); }
  Vars record(const Vars& results) {
    std::vector<ValueId> ids;
    for (const Var& result : results) ids.push_back(result.id());
    body_->set_results(ids);
    return record_call(outer_[0].tape(), checkpoint_op(), outer_, {}, body_);
  }

 private:
  std::shared_ptr<Tape> body_;
  Vars outer_;
};

/// Returns the marked vars.
Vars chosen(const Vars& vars, const std::vector<bool>& marked) {
  Vars some;
  for (std::size_t i = 0; i < vars.size(); ++i)
    if (marked[i]) some.push_back(vars[i]);
  return some;
}
/// The inverse of `chosen`: puts the vars of `some` at the marked places, and empty vars at the other places.
Vars placed(const Vars& some, const std::vector<bool>& marked) {
  Vars vars(marked.size());
  for (std::size_t i = 0, next = 0; i < vars.size(); ++i)
    if (marked[i]) vars[i] = some[next++];
  return vars;
}
std::vector<bool> present(const Vars& vars) {
  std::vector<bool> marked;
  for (const Var& var : vars) marked.push_back(!var.empty());
  return marked;
}

Vars checkpoint_gradient(const GradientCall& call) {
  ExtendedBody body(call.inputs[0].tape());
  const Vars inputs = body.enter(call.inputs), cotangents = body.enter(call.cotangents);
  const Vars results = body.copy(*call.node.body, inputs);
  const std::vector<bool> reached = present(cotangents);
  const Vars gradients = call.grad(chosen(results, reached), chosen(inputs, call.needs), chosen(cotangents, reached));
  return placed(body.record(gradients), call.needs);
}

Vars checkpoint_tangent(const TangentCall& call) {
  ExtendedBody body(call.inputs[0].tape());
  const Vars inputs = body.enter(call.inputs), tangents = body.enter(call.tangents);
  const Vars results = body.copy(*call.node.body, inputs);
  const std::vector<bool> vary = present(tangents);
  return placed(body.record(call.jvp(chosen(results, call.needs), chosen(inputs, vary), chosen(tangents, vary))),
                call.needs);
}

Vars record_checkpoint(const std::function<Vars(const Vars&)>& function, const Vars& inputs, const Caller& caller) {
  at_place(caller, [&] {
    if (!function) throw Error("checkpoint: the function is empty");
    if (inputs.empty()) throw Error("checkpoint: needs at least one input");
  });
  Tape tape = inputs[0].tape();
  const auto check = [&](const Vars& vars, const char* what) {
    for (const Var& var : vars)
      if (var.tape() != tape) throw HandleError(std::string("checkpoint: its ") + what + " belong to different tapes");
  };
  check(inputs, "inputs");
  if (tape.capacity() > 0) return function(inputs);  // a body cannot hold the states of the tape's caches
  const std::size_t size = tape.size();
  const Rollback rollback(tape);
  const Vars results = function(inputs);
  if (results.empty()) throw Error("checkpoint: the function gives no result");
  check(results, "inputs and results");
  const auto [body, outer] = tape.enclose(size, results);
  const auto in_call = tape.in_call(&checkpoint_op(), caller);
  return record_call(tape, checkpoint_op(), outer, {}, body);
}
}  // namespace

Vars checkpoint(const std::function<Vars(const Vars&)>& function, const Vars& inputs, Caller caller) {
  return at_place(caller, [&] { return record_checkpoint(function, inputs, caller); });
}

}  // namespace xtape
