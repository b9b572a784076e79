#include "ops/recording/enclosed.hpp"

#include "tape/graph.hpp"

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
          [](const OpCall& call) {
            const std::vector<std::int64_t>& sizes = call.integers("shape");
            return std::vector<ValueType>{{call.attributes.get<Dtype>("dtype"), Shape(sizes.begin(), sizes.end())}};
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

}  // namespace xtape
