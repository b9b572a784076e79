// Defines an op with plain C++ code: the slope of the Lorenz system. More C++ functions give the products with its
// Jacobian. A scan integrates the slope. Forward and reverse mode give the Jacobian of the last state.
#include <array>
#include <cmath>
#include <iostream>
#include <xtape/xtape.hpp>
using namespace xtape;

// Functions of vectors of three numbers. in[0] is the state, in[1] is a tangent or a cotangent.
using Function = void (*)(const std::array<const double*, 2>& in, double* out);

void slope(const std::array<const double*, 2>& in, double* out) {
  const double* y = in[0];
  out[0] = 10 * (y[1] - y[0]), out[1] = y[0] * (28 - y[2]) - y[1], out[2] = y[0] * y[1] - 8.0 / 3 * y[2];
}
void slope_jvp(const std::array<const double*, 2>& in, double* out) {  // the Jacobian times a tangent
  const double *y = in[0], *t = in[1];
  out[0] = 10 * (t[1] - t[0]);
  out[1] = t[0] * (28 - y[2]) - y[0] * t[2] - t[1];
  out[2] = t[0] * y[1] + y[0] * t[1] - 8.0 / 3 * t[2];
}
void slope_vjp(const std::array<const double*, 2>& in, double* out) {  // a cotangent times the Jacobian
  const double *y = in[0], *c = in[1];
  out[0] = -10 * c[0] + (28 - y[2]) * c[1] + y[1] * c[2];
  out[1] = 10 * c[0] - c[1] + y[0] * c[2];
  out[2] = -y[0] * c[1] - 8.0 / 3 * c[2];
}

// Returns the op of a function. Its inputs are [3], or [rows, 3] for a batch of examples. The kernel calls the function
// once per row.
Op row_op(const char* name, const std::vector<InputSpec>& inputs, Function function) {
  Op op;
  op.name = name;
  op.doc = "A function of vectors of three numbers.";
  op.inputs = inputs;
  op.shape = [](const OpCall& call) {
    for (const ValueType& each : call.inputs)
      if (each.dtype != Dtype::float64 || each.shape != call.shape(0) || each.shape.empty() || each.shape.back() != 3)
        throw ShapeError("takes float64 arrays [..., 3] of one shape, got " + to_string(each));
    return std::vector<ValueType>{call.inputs[0]};
  };
  op.batch = [](const BatchCall& call) { return apply(call.op, call.all_whole()); };
  op.lowering.kernel = [function](const KernelCall& call) {
    const std::int64_t rows = count_of(call.shape(0)) / 3;
    const std::size_t count = call.inputs.size();
    Kernel kernel;
    kernel.run = [function, rows, count](const KernelArguments& arguments) {
      for (std::int64_t row = 0; row < rows; ++row) {
        std::array<const double*, 2> in = {};
        for (std::size_t i = 0; i < count; ++i) in[i] = static_cast<const double*>(arguments.in[i]) + 3 * row;
        function(in, static_cast<double*>(arguments.out[0]) + 3 * row);
      }
    };
    return kernel;
  };
  return op;
}

const InputSpec y_input = {"y", Accept::floating, Arity::one}, t_input = {"t", Accept::floating, Arity::one};
const Op jvp_op = row_op("lorenz_jvp", {y_input, t_input}, slope_jvp);
const Op vjp_op = row_op("lorenz_vjp", {y_input, t_input}, slope_vjp);
const Op slope_op = [] {
  Op op = row_op("lorenz", {y_input}, slope);
  op.gradient = [](const GradientCall& call) { return apply(vjp_op, {call.inputs[0], call.cotangent()}); };
  op.derivative.tangent = [](const TangentCall& call) { return apply(jvp_op, {call.inputs[0], call.tangents[0]}); };
  return op;
}();

int main() try {
  OpTable table = builtin_ops();  // before the tape, because it must outlive the tape
  for (const Op* op : {&slope_op, &jvp_op, &vjp_op}) table.add(*op);
  const auto f = [](const Var& y) { return apply(slope_op, {y})[0]; };
  const auto report = gradcheck([&](const Vars& y) { return Vars{f(y[0])}; }, {std::vector<double>{1, 2, 3}});
  std::cout << "error of the gradient: " << report.worst << '\n';

  Tape tape(Dtype::float64);
  const Var start = tape.input("start", {3});
  const double dt = 0.01;
  const ScanFunction advance = [&](const Vars&, const Vars& states) {  // a Runge-Kutta step
    const Var y = states[0], a = f(y), b = f(y + dt / 2 * a), c = f(y + dt / 2 * b), d = f(y + dt * c);
    return std::pair{Vars{}, Vars{y + dt / 6 * (a + 2 * b + 2 * c + d)}};
  };
  ScanOptions along;
  along.axis = 0;
  const Var end = scan(advance, {arange(tape, 100)}, {start}, along).states[0];
  JacobianOptions options;
  options.mode = JacobianMode::forward;
  const Var forward = jacobian(end, start, options);
  options.mode = JacobianMode::reverse;
  const Var reverse = jacobian(end, start, options);
  Player player(tape, {forward, reverse});
  player.play({{start, {1, 1, 1}}});
  std::cout << "d end[0] / d start[0]: " << player.view(forward)(0, 0) << " forward, " << player.view(reverse)(0, 0)
            << " reverse\n";

  tape.set_ops(table);
  tape.save("lorenz", {{"jacobian", forward}});
  const SavedTape saved = Tape::load("lorenz", {}, &table);
  const Array loaded = evaluate(saved.outputs.at("jacobian"), {{saved.inputs.at("start"), {1, 1, 1}}});
  std::cout << "from the file: " << loaded(0, 0) << '\n';
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
