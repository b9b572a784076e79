#include "xtape/derivatives.hpp"

#include <functional>
#include <limits>

#include "grad/chunks.hpp"
#include "ops/recording/op_helpers.hpp"
#include "tape/calls.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops.hpp"
#include "xtape/scan.hpp"
#include "xtape/vmap.hpp"

namespace xtape {

namespace {
std::int64_t elements(const Vars& vars) {
  std::int64_t count = 0;
  for (const Var& var : vars)
    if (!checked_add(count, count_of(var.shape()))) return std::numeric_limits<std::int64_t>::max();
  return count;
}

Shape joined(const Shape& first, const Shape& second) {
  Shape shape = first;
  for (const std::int64_t size : second) shape.push_back(size);
  return shape;
}

/// Returns the unit vectors of an array of this type, [n, …].
Var unit_vectors(const Var& like) {
  const std::int64_t count = count_of(like.shape());
  return reshape(eye(like.tape(), count, count, like.dtype()), joined({count}, like.shape()));
}

Vars by_tangents(const Var& output, const Vars& inputs, std::int64_t chunk_size) {
  Vars jacobians;
  for (const Var& input : inputs) {
    const auto along = [&](const Vars& tangent) { return jvp({output}, {input}, tangent); };
    const Var columns = over_chunks(along, unit_vectors(input), chunk_size)[0];  // [n, …output]
    const Var last = first_axis_to(columns, -1);
    jacobians.push_back(reshape(last, joined(output.shape(), input.shape())));
  }
  return jacobians;
}

Vars by_cotangents(const Var& output, const Vars& inputs, std::int64_t chunk_size) {
  const auto back = [&](const Vars& cotangent) {
    return grad({output}, inputs, cotangent, {.materialize_grads = true});
  };
  Vars jacobians = over_chunks(back, unit_vectors(output), chunk_size);  // [m, …input]
  for (std::size_t i = 0; i < inputs.size(); ++i)
    jacobians[i] = reshape(jacobians[i], joined(output.shape(), inputs[i].shape()));
  return jacobians;
}
}  // namespace

Vars over_chunks(const std::function<Vars(const Vars&)>& function, const Var& rows, std::int64_t chunk_size) {
  const std::int64_t count = rows.size(0);
  if (chunk_size == 0 || chunk_size >= count) return vmap(function, {rows});
  const std::int64_t chunks = count / chunk_size, whole = chunks * chunk_size;
  Shape rest = rows.shape();
  rest.erase(0);
  const Var cut = reshape(slice(rows, {0}, {whole}), joined({chunks, chunk_size}, rest));
  const auto cell = [&](const Vars& inputs, const Vars&) {
    return std::make_pair(vmap(function, {inputs[0]}), Vars{});
  };
  ScanOptions along_chunks;
  along_chunks.axis = 0;
  Vars results = scan(cell, {cut}, {}, along_chunks).outputs;
  for (Var& result : results) {
    Shape shape = result.shape();
    shape.erase(0);
    shape[0] = whole;
    result = reshape(result, shape);
  }
  if (whole == count) return results;
  const Vars last = vmap(function, {slice(rows, {whole}, {open_end})});
  for (std::size_t k = 0; k < results.size(); ++k) results[k] = concat({results[k], last[k]}, 0);
  return results;
}

Vars hvp(const Var& output, const Vars& inputs, const Vars& directions, Caller caller) {
  return all_or_nothing(output.tape(), nullptr, caller,
                        [&] { return jvp(grad(output, inputs, {.materialize_grads = true}), inputs, directions); });
}

Vars jacobian(const Var& output, const Vars& inputs, const JacobianOptions& options, Caller caller) {
  return all_or_nothing(output.tape(), nullptr, caller, [&] {
    if (options.chunk_size < 0)
      throw Error("jacobian: chunk_size must not be negative, got " + std::to_string(options.chunk_size));
    if (inputs.empty()) throw Error("jacobian: needs at least one input");
    for (const Var& input : inputs)
      if (input.tape() != output.tape()) throw HandleError("jacobian: an input is of another tape");
    const bool few_inputs = elements(inputs) < elements({output});
    const bool forward =
        options.mode == JacobianMode::forward || (options.mode == JacobianMode::automatic && few_inputs);
    Vars found =
        forward ? by_tangents(output, inputs, options.chunk_size) : by_cotangents(output, inputs, options.chunk_size);
    // in reverse mode, gradients have the dtypes of the inputs
    for (Var& each : found) each = cast(each, output.dtype());
    return found;
  });
}

Var jacobian(const Var& output, const Var& input, const JacobianOptions& options, Caller caller) {
  return jacobian(output, Vars{input}, options, caller)[0];
}

Var hessian(const Var& output, const Var& input, const JacobianOptions& options, Caller caller) {
  return all_or_nothing(output.tape(), nullptr, caller, [&] {
    if (count_of(output.shape()) != 1)
      throw ShapeError("hessian: the output must have one element, got " + to_string(output.shape()) +
                       ": take its sum, or one element of it, or for all of them jacobian(jacobian(y, x), x)");
    JacobianOptions chosen = options;
    if (chosen.mode == JacobianMode::automatic) chosen.mode = JacobianMode::forward;
    return jacobian(grad(output, {input}, {.materialize_grads = true})[0], input, chosen);
  });
}

}  // namespace xtape
