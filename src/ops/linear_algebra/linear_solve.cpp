// linear_solve: the solution of A x = b. A body computes the products with A.
#include "xtape/linear_solve.hpp"

#include <algorithm>
#include <cmath>

#include "base/messages/wording.hpp"
#include "ops/recording/enclosed.hpp"
#include "tape/calls.hpp"
#include "tape/graph.hpp"
#include "xtape/loops.hpp"
#include "xtape/ops.hpp"

namespace xtape {

const Op& linear_solve_op();

namespace {
constexpr std::int64_t most_unknowns = 100'000;  // the default of max_steps counts at most this many unknowns

/// The attributes of the node. Its inputs are b and the values that the product uses. The inputs of the body are v and
/// the same values.
struct SolveForm {
  SolveForm() = default;
  explicit SolveForm(const Attributes& given)
      : unknowns(given.get<std::int64_t>("unknowns")),
        batch_axes(given.get<std::int64_t>("batch_axes")),
        options{given.get<bool>("positive_definite"), given.get<double>("rtol"), given.get<double>("atol"),
                given.get<std::int64_t>("max_steps"), given.get<std::int64_t>("restart")} {}
  Attributes attributes() const {
    return {{"unknowns", unknowns},      {"batch_axes", batch_axes}, {"positive_definite", options.positive_definite},
            {"rtol", options.rtol},      {"atol", options.atol},     {"max_steps", options.max_steps},
            {"restart", options.restart}};
  }
  std::int64_t unknowns = 0;    // number of arrays, not of elements
  std::int64_t batch_axes = 0;  // number of leading axes of all unknowns; each index along them is a separate system
  LinearSolveOptions options;
};

std::vector<ValueType> solve_types(const OpCall& call) {
  if (call.body == nullptr) throw Error("needs a body: record it with xtape::linear_solve(product, b)");
  const SolveForm form(call.attributes);
  if (form.unknowns < 1 || form.unknowns > std::ssize(call.inputs)) throw ShapeError("has fewer inputs than unknowns");
  const std::vector<ValueType> unknowns(call.inputs.begin(), call.inputs.begin() + form.unknowns);
  std::vector<ValueType> given, products;
  for (const ValueId& id : call.body->inputs()) given.push_back(call.body->type(id));
  for (const ValueId& id : call.body->results()) products.push_back(call.body->type(id));
  if (given != call.inputs) throw ShapeError("the inputs of its body must have the types of its inputs");
  if (products != unknowns) throw ShapeError("the results of its body must have the types of the unknowns");
  for (const ValueType& type : unknowns) {
    if (!is_floating(type.dtype) || type.dtype != unknowns[0].dtype)
      throw DtypeError("the unknowns must have one float dtype, got " + to_string(unknowns[0]) + " and " +
                       to_string(type));
    const auto batch = static_cast<std::size_t>(form.batch_axes);
    if (form.batch_axes < 0 || batch > type.shape.size() ||
        !std::equal(type.shape.begin(), type.shape.begin() + form.batch_axes, unknowns[0].shape.begin()))
      throw ShapeError("the unknowns must have the same sizes along the axes of the batch");
  }
  const LinearSolveOptions& options = form.options;
  if (!(options.rtol >= 0) || !(options.atol >= 0)) throw Error("rtol and atol must not be negative");
  if (options.max_steps < 0) throw Error("max_steps must not be negative, got " + std::to_string(options.max_steps));
  if (options.restart < 1) throw Error("restart must be at least 1, got " + std::to_string(options.restart));
  return unknowns;
}

/// The systems of a node as vectors [batch…, n].
class Systems {
 public:
  Systems(const ExpandCall& call, const SolveForm& form) : call_(call), form_(form) {
    const auto first_captured = call.inputs.begin() + form.unknowns;
    b_ = Vars(call.inputs.begin(), first_captured);
    captured_ = Vars(first_captured, call.inputs.end());
    const Shape& shape = b_[0].shape();
    batch_ = Shape(shape.begin(), shape.begin() + form.batch_axes);
  }
  Var b() const { return joined(b_); }
  /// A v.
  Var product(const Var& v) const {
    Vars inputs = parts(v);
    inputs.insert(inputs.end(), captured_.begin(), captured_.end());
    return joined(inline_body(v.tape(), *call_.node.body, inputs));
  }
  Vars parts(const Var& x) const {
    std::vector<std::int64_t> sizes;
    for (const Var& each : b_) sizes.push_back(size_of(each));
    Vars vars = split(x, sizes, -1);
    for (std::size_t i = 0; i < vars.size(); ++i) vars[i] = reshape(vars[i], b_[i].shape());
    return vars;
  }

 private:
  std::int64_t size_of(const Var& var) const {
    const Shape& shape = var.shape();
    return count_of(Shape(shape.begin() + form_.batch_axes, shape.end()));
  }
  Var joined(Vars vars) const {
    for (Var& var : vars) {
      Shape shape = batch_;
      shape.push_back(size_of(var));
      var = reshape(var, shape);
    }
    return vars.size() == 1 ? vars[0] : concat(vars, -1);
  }

  const ExpandCall& call_;
  const SolveForm& form_;
  Vars b_, captured_;
  Shape batch_;
};

/// Returns the sum over the elements of each system, [batch…, 1].
Var dot(const Var& a, const Var& b) {
  return sum(a * b, {-1}, true);
}
/// Returns 1 / |v| for the given square of |v|, or 0 if v is 0.
Var inverse_norm(const Var& square) {
  return where(equal(square, 0), 0, rsqrt(square));
}

/// Conjugate gradients. The states are the solution, the residual, the direction, and the square of the residual's
/// norm.
Vars conjugate_gradients(const Systems& systems, const Var& b, const Var& bound, std::int64_t max_steps) {
  const auto unsolved = [&](const Vars& states) { return greater(states[3], bound); };
  const auto step = [&](const Vars& states) {
    const Var &x = states[0], &r = states[1], &p = states[2], &square_norm = states[3];
    const Var product = systems.product(p);
    const Var active = unsolved(states);
    const Var length = where(active, square_norm / dot(p, product), 0);
    const Var next = r - length * product;
    const Var next_square = dot(next, next);
    return Vars{x + length * p, next, next + where(active, next_square / square_norm, 0) * p, next_square};
  };
  return while_loop([&](const Vars& states) { return any(unsolved(states)); }, step, {zeros_like(b), b, b, dot(b, b)},
                    max_steps)
      .states;
}

/// The method that is called Simpler GMRES. The products q_i = A p_i are orthonormal, so the residual can be minimised
/// along each new q separately. The states are the solution, the residual, the next direction, the square of the
/// residual's norm, all p and q of this cycle, and their number.
Vars gmres(const Systems& systems, const Var& b, const Var& bound, const LinearSolveOptions& options,
           std::int64_t max_steps) {
  const std::int64_t size = std::min(options.restart, max_steps);
  Shape kept = b.shape(), slots = Shape::filled(b.rank() + 1, 1);
  kept.insert(0, size);
  slots[0] = size;
  const Tape tape = b.tape();
  const auto unsolved = [&](const Vars& states) { return greater(states[3], bound); };
  const auto step = [&](const Vars& states) {
    const Var &x = states[0], &r = states[1], &square_norm = states[3], &ps = states[4], &qs = states[5],
              &count = states[6];
    Var p = states[2], q = systems.product(p);
    for (int pass = 0; pass < 2; ++pass) {  // twice, so that the vectors are orthogonal up to rounding
      const Var along = sum(qs * q, {-1}, true);
      q = q - sum(along * qs, {0});
      p = p - sum(along * ps, {0});
    }
    const Var inverse = inverse_norm(dot(q, q));
    p = p * inverse;
    q = q * inverse;
    const Var active = unsolved(states);
    const Var length = where(active, dot(r, q), 0);
    const Var next = r - length * q;
    const Var next_square = dot(next, next);
    // If the residual decreases, the residual is the better next direction. If it stagnates, the last product is
    // better.
    const Var full = equal(count + 1, size);
    const Var falls = less(next_square, 0.8 * square_norm) | full;
    const Var direction = where(falls, next * inverse_norm(next_square), q);
    const Var place = equal(reshape(iota(tape, {size}), slots), count);
    return Vars{x + length * p,
                next,
                direction,
                next_square,
                where(full, 0, where(place, expand_dims(p, 0), ps)),
                where(full, 0, where(place, expand_dims(q, 0), qs)),
                where(full, 0, count + 1)};
  };
  const Var square_norm = dot(b, b);
  const Vars init{zeros_like(b),
                  b,
                  b * inverse_norm(square_norm),
                  square_norm,
                  zeros(tape, kept, b.dtype()),
                  zeros(tape, kept, b.dtype()),
                  zeros(tape, {}, Dtype::int64)};
  return while_loop([&](const Vars& states) { return any(unsolved(states)); }, step, init, max_steps).states;
}

/// Returns the relative rounding error of a float dtype.
double precision_of(Dtype dtype) {
  return dtype == Dtype::float64   ? 0x1p-52
         : dtype == Dtype::float32 ? 0x1p-23
         : dtype == Dtype::float16 ? 0x1p-10
                                   : 0x1p-7;
}

/// Each system is divided by the largest magnitude of its right-hand side. Squares then neither overflow nor vanish. At
/// the end, b - A x is computed once, which also detects a product that is not linear.
Vars solve(const ExpandCall& call) {
  const SolveForm form(call.attributes);
  const LinearSolveOptions& options = form.options;
  const Systems systems(call, form);
  const Var given = systems.b();
  const std::int64_t count = given.size(-1);
  if (count == 0) return systems.parts(given);
  const Var largest = max(abs(given), {-1}, true);
  const Var scale = where(greater(largest, 0) & less(largest, INFINITY), largest, 1);
  const Var b = given / scale, square_norm = dot(b, b);
  const std::int64_t max_steps = options.max_steps > 0 ? options.max_steps : 10 * std::min(count, most_unknowns);
  // An atol far above |b| is capped, so that its square stays finite.
  const Var bound = maximum(options.rtol * options.rtol * square_norm, square(minimum(options.atol / scale, 1e15)));
  const Vars states = options.positive_definite ? conjugate_gradients(systems, b, bound, max_steps)
                                                : gmres(systems, b, bound, options, max_steps);
  const Var residual = b - systems.product(states[0]);
  // The largest allowed square of the computed residual. This residual may be ten times the tolerance, or |b| times the
  // square root of the rounding error.
  const Var allowed = maximum(100 * bound, precision_of(b.dtype()) * square_norm);
  const Var is_solved = less_equal(states[3], bound) & less_equal(dot(residual, residual), allowed);
  return systems.parts(where(is_solved, states[0] * scale, std::nan("")));
}

/// Returns the body of the transposed system.
std::shared_ptr<const Tape> transposed(const GradientCall& call, const SolveForm& form) {
  std::vector<bool> marked(call.inputs.size(), false);
  std::fill_n(marked.begin(), form.unknowns, true);
  const Tape by_v = pullback(*call.node.body, marked, call.grad);
  const std::vector<ValueId> places = by_v.inputs();
  auto body = std::make_shared<Tape>(by_v.blank());
  Vars inputs, cotangents;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const ValueType type = by_v.type(places[i]);
    inputs.push_back(body->input("in" + std::to_string(i), type.shape, type.dtype));
  }
  for (std::int64_t i = 0; i < form.unknowns; ++i) {
    cotangents.push_back(inputs[i]);
    inputs[i] = zeros_like(inputs[i]);  // any v works, because the gradient of a linear function is the same everywhere
  }
  inputs.insert(inputs.end(), cotangents.begin(), cotangents.end());
  std::vector<ValueId> results;
  for (const Var& each : inline_body(*body, by_v, inputs)) results.push_back(each.id());
  body->set_results(results);
  return body;
}

/// For A x = b, the cotangent of b is the solution of the transposed system. The cotangent of A is minus the cotangent
/// of b times x.
Vars solve_gradient(const GradientCall& call) {
  const SolveForm form(call.attributes);
  const Tape tape = call.inputs[0].tape();
  const auto unknowns = static_cast<std::size_t>(form.unknowns);
  Vars inputs = call.inputs;
  for (std::size_t i = 0; i < unknowns; ++i) inputs[i] = call.cotangent(i);
  const auto body = form.options.positive_definite ? call.node.body : transposed(call, form);
  Vars gradients = record_call(tape, call.op, inputs, form.attributes(), body);

  gradients.resize(inputs.size());
  std::vector<bool> marked = call.needs;
  std::fill_n(marked.begin(), unknowns, false);
  if (contains(marked, true)) {
    std::copy(call.outputs.begin(), call.outputs.end(), inputs.begin());
    for (std::size_t i = 0; i < unknowns; ++i) inputs.push_back(-gradients[i]);
    const Vars found = inline_body(tape, pullback(*call.node.body, marked, call.grad), inputs);
    for (std::size_t i = 0, next = 0; i < marked.size(); ++i)
      if (marked[i]) gradients[i] = found[next++];
  }
  return gradients;
}

Vars batch_solve(const BatchCall& call) {
  SolveForm form(call.attributes);
  ++form.batch_axes;
  Vars inputs = call.inputs;
  std::vector<bool> mapped = call.mapped;
  for (std::size_t i = 0; i < static_cast<std::size_t>(form.unknowns); ++i) {
    inputs[i] = call.whole(i);
    mapped[i] = true;
  }
  const auto body = std::make_shared<Tape>(call.body(*call.node.body, mapped));
  return record_call(call.tape, call.op, inputs, form.attributes(), body);
}
}  // namespace

const Op& linear_solve_op() {
  static const Op entry{
      .name = "linear_solve",
      .doc = R"(The solution x of A x = b. Its body computes A v from v and further inputs. Conjugate gradients or GMRES
           solve the system to a tolerance; a system that is not solved gives NaN.)",
      .inputs = {{"xs", Accept::any, Arity::many}},
      .outputs = {"ys"},
      .attributes = {{"unknowns", AttributeType::integer, "The number of arrays in x.", std::nullopt},
                     {"batch_axes", AttributeType::integer, "The first axes, along which systems are separate.",
                      std::nullopt},
                     {"positive_definite", AttributeType::boolean, "If true, A is symmetric and positive definite.",
                      std::nullopt},
                     {"rtol", AttributeType::number, "The largest residual, relative to b.", std::nullopt},
                     {"atol", AttributeType::number, "The largest residual, if that is more.", std::nullopt},
                     {"max_steps", AttributeType::integer, "The largest number of products. 0 means ten per unknown.",
                      std::nullopt},
                     {"restart", AttributeType::integer, "The number of directions that GMRES keeps.", std::nullopt}},
      .shape = solve_types,
      .gradient = solve_gradient,
      .batch = batch_solve,
      .expand = solve,
      .derivative = {.differs = true}};
  return entry;
}

namespace {
Vars record_solve(Tape tape, const std::function<Vars(const Vars&)>& product, const Vars& b,
                  const LinearSolveOptions& options) {
  for (const Var& each : b)
    if (each.tape() != tape) throw HandleError("linear_solve: its right-hand sides belong to different tapes");
  const std::vector<ValueType> types = types_of(b);
  const Enclosed recorded = enclosed(tape, types, [&](const Vars& v) {
    const Vars products = product(v);
    require_types("linear_solve: the product", products, types);
    return products;
  });
  if (draws(*recorded.body))
    throw Error(
        "linear_solve: the product draws random numbers, which differ from product to product: draw them outside");
  SolveForm form;
  form.unknowns = std::ssize(b);
  form.options = options;
  Vars inputs = b;
  inputs.insert(inputs.end(), recorded.captured.begin(), recorded.captured.end());
  return record_call(tape, linear_solve_op(), inputs, form.attributes(), recorded.body);
}
}  // namespace

Vars linear_solve(const std::function<Vars(const Vars&)>& product, const Vars& b, const LinearSolveOptions& options,
                  Caller caller) {
  return at_place(caller, [&] {
    if (!product) throw Error("linear_solve: the product is empty");
    if (b.empty()) throw Error("linear_solve: needs at least one right-hand side");
    const Tape tape = b[0].tape();
    return all_or_nothing(tape, &linear_solve_op(), caller, [&] { return record_solve(tape, product, b, options); });
  });
}

Var linear_solve(const std::function<Var(const Var&)>& product, const Var& b, const LinearSolveOptions& options,
                 Caller caller) {
  std::function<Vars(const Vars&)> listed;
  if (product) listed = [&](const Vars& v) { return Vars{product(v[0])}; };
  return linear_solve(listed, Vars{b}, options, caller)[0];
}

}  // namespace xtape
