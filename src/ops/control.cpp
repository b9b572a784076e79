// Ops that pass their argument on.
#include "xtape/op.hpp"
#include "xtape/ops.hpp"

namespace xtape {

namespace {
Op identity(const char* name, const char* doc) {
  Op op;
  op.name = name;
  op.doc = doc;
  op.inputs = {{"x", Accept::any}};
  op.kind = Kind::view;
  op.shape = [](const Call& call) -> std::vector<ValueType> { return {call.inputs[0]}; };
  op.view = [](const Call&, const Layout& layout) { return std::optional<Layout>(layout); };
  return op;
}

const Op& stop_gradient_op() {
  static const Op row = [] {
    Op op = identity("stop_gradient", "x, through which no gradient flows.");
    op.differentiable = false;
    return op;
  }();
  return row;
}

const Op& cache_op() {
  static const Op row = [] {
    Op op =
        identity("cache",
                 "x itself, and nothing is recorded, unless the tape's mode is predict. There it marks what a model "
                 "that reads its input piece by piece needs of earlier pieces along `axis`; it passes on the present "
                 "piece and keeps nothing.");
    op.attributes = {
        {"axis", AttributeType::integer, "The axis along which pieces follow one another.", std::int64_t{1}}};
    op.shape = [](const Call& call) -> std::vector<ValueType> {
      normal_axis(call.integer("axis"), call.shape(0).size());
      return {call.inputs[0]};
    };
    op.gradient = [](const GradientCall& call) { return Vars{call.cotangent()}; };
    op.record = [](Tape& tape, const Op& self, const Vars& inputs, const Attributes& attributes) -> Vars {
      normal_axis(attributes.get<std::int64_t>("axis"), inputs[0].rank());
      if (tape.mode() != Mode::predict) return inputs;
      return record_call(tape, self, inputs, attributes);
    };
    return op;
  }();
  return row;
}
}  // namespace

Var stop_gradient(const Var& x) {
  return apply(stop_gradient_op(), {x})[0];
}
Var cache(const Var& x, std::int64_t axis) {
  return apply(cache_op(), {x}, {{"axis", axis}})[0];
}

void list_control(OpTable& table) {
  for (const Op* op : {&stop_gradient_op(), &cache_op()}) table.add(*op);
}

}  // namespace xtape
