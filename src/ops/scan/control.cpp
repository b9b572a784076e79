// stop_gradient, watch, and cache, which keeps earlier inputs in mode predict.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/arrays/elements.hpp"
#include "base/blocks/block_formats.hpp"
#include "base/threads/threads.hpp"
#include "kernels/table/kernels.hpp"
#include "ops/recording/op_helpers.hpp"

namespace xtape {

namespace {
const Op& stop_gradient_op() {
  static const Op entry{.name = "stop_gradient",
                        .doc = "x itself. No gradient flows through it. A view: nothing is copied.",
                        .inputs = {{"x", Accept::any}},
                        .shape = +[](const OpCall& call) -> std::vector<ValueType> { return {call.inputs[0]}; },
                        .batch = batch_leading,
                        .differentiable = false,
                        .lowering = {.view = {.output = +[](const OpCall&, const Layout& layout) {
                                       return std::optional<Layout>(layout);
                                     }}}};
  return entry;
}

Kernel watch_kernel(const KernelCall& call) {
  const Shape condition = call.shape(1);
  const auto copy = kernels().make_copy(call.dtype(0), call.in[0], call.out[0], call.threads);
  return Kernel{[condition, copy](const KernelArguments& arguments) {
    const auto count = static_cast<std::size_t>(count_of(condition));
    if (const void* wrong = std::memchr(arguments.in[1], 0, count)) {
      const std::int64_t flat = static_cast<const std::byte*>(wrong) - static_cast<const std::byte*>(arguments.in[1]);
      throw Error("the condition is false at " + index_text(index_of(flat, condition)));
    }
    if (arguments.in[0] != arguments.out[0]) copy(arguments.in[0], arguments.out[0]);
  }};
}

const Op& watch_op() {
  static const Op entry{
      .name = "watch",
      .doc = R"(x itself. Playing throws an error if an element of `condition` is false. The error names the line and
           the first index. The check takes place only if the result is used.)",
      .inputs = {{"x", Accept::any}, {"condition", Accept::mask}},
      .shape = +[](const OpCall& call) -> std::vector<ValueType> { return {call.inputs[0]}; },
      .gradient =
          +[](const GradientCall& call) {
            return Vars{call.cotangent(), {}};
          },
      .batch = batch_leading,
      .lowering = {.kernel = watch_kernel, .overwrites = {0}, .dtypes = {.any = true}}};
  return entry;
}

/// Rounds numbers to blocks of Q8_0. A block becomes NaN if a number is not finite, or above 8.3e6, for which float16
/// has no scale.
void round_to_bytes(const float* from, std::byte* to, std::int64_t count) {
  static const BlockFormat& format = *find_block_format(name_of(Dtype::q8_0));
  for (std::int64_t first = 0; first < count; first += format.elements, to += format.bytes) {
    const float* x = from + first;
    format.encode(x, to, 1);
    block::Q8_0 made;
    std::memcpy(&made, to, sizeof made);
    const auto is_finite = [](float number) { return std::isfinite(number); };
    if (is_finite(static_cast<float>(made.scale)) && std::all_of(x, x + format.elements, is_finite)) continue;
    block::Q8_0 nan{float16(std::numeric_limits<float>::quiet_NaN()), {}};
    std::memcpy(to, &nan, sizeof nan);
  }
}

/// The sizes of a cache. A row of x has the shape [outer, piece, inner], and a row of the state has the shape [outer,
/// capacity, inner].
struct CacheExtent {
  std::int64_t rows, outer, piece, capacity, inner;
  std::size_t x_bytes, state_bytes;  ///< Of a position.
  bool rounds;                       ///< Whether x has floats and the state blocks.

  explicit CacheExtent(const OpCall& call) {
    const Shape& x = call.shape(0);
    const std::size_t axis = normal_axis(call.integer("axis"), x.size());
    rows = x[0];
    piece = x[axis];
    capacity = call.shape(1)[axis];
    outer = 1;
    for (std::size_t i = 1; i < axis; ++i) outer *= x[i];
    inner = 1;
    for (std::size_t i = axis + 1; i < x.size(); ++i) inner *= x[i];
    x_bytes = static_cast<std::size_t>(bytes_of(call.dtype(0), inner));
    state_bytes = static_cast<std::size_t>(bytes_of(call.dtype(1), inner));
    rounds = call.dtype(0) != call.dtype(1);
  }

  /// Copies the positions of x with index `k` over [rows, outer] to the state, where they begin at position `past`.
  /// Positions beyond the capacity are dropped.
  void write(const std::byte* x, std::byte* state, std::int64_t k, std::int64_t past) const {
    const std::int64_t count = std::min(piece, capacity - past);
    if (count <= 0) return;
    const std::byte* from = x + static_cast<std::size_t>(k * piece) * x_bytes;
    std::byte* to = state + static_cast<std::size_t>(k * capacity + past) * state_bytes;
    if (rounds)
      round_to_bytes(reinterpret_cast<const float*>(from), to, count * inner);
    else
      std::memcpy(to, from, static_cast<std::size_t>(count) * x_bytes);
  }
};

Kernel cache_kernel(const KernelCall& call) {
  constexpr std::size_t grain_bytes = 65536;  // fewer bytes are not worth another thread
  const CacheExtent extent(call);
  const std::size_t bytes = std::max<std::size_t>(1, static_cast<std::size_t>(extent.piece) * extent.x_bytes);
  const auto grain = static_cast<std::int64_t>(std::max<std::size_t>(1, grain_bytes / bytes));
  const auto all = kernels().make_copy(call.dtype(1), call.in[1], call.out[0], call.threads);
  return Kernel{[extent, grain, all, threads = call.threads](const KernelArguments& arguments) {
    const auto* past = static_cast<const std::int64_t*>(arguments.in[2]);
    for (std::int64_t row = 0; row < extent.rows; ++row)
      if (past[row] < 0)
        throw Error("cache: row " + std::to_string(row) + " cannot have a past of " + std::to_string(past[row]) +
                    " positions");
    if (arguments.in[1] != arguments.out[0]) all(arguments.in[1], arguments.out[0]);
    parallel_for(threads, extent.rows * extent.outer, grain, [&](std::int64_t begin, std::int64_t finish) {
      for (std::int64_t k = begin; k < finish; ++k)
        extent.write(static_cast<const std::byte*>(arguments.in[0]), static_cast<std::byte*>(arguments.out[0]), k,
                     past[k / extent.outer]);
    });
  }};
}

/// If called with x alone, adds a state to the tape and records the call with this state. Returns x itself if x has no
/// past.
Vars record_cache(Tape& tape, const Op& self, const Vars& inputs, const Attributes& attributes) {
  if (inputs.size() > 1) return record_call(tape, self, inputs, attributes);
  const Var& x = inputs[0];
  const std::size_t axis = normal_axis(attributes.get<std::int64_t>("axis"), x.rank());
  const Var past = tape.past_of(x);
  if (past.empty()) return inputs;
  Shape shape = x.shape();
  shape[axis] = tape.capacity();
  const bool in_blocks = tape.caches() == Dtype::q8_0 && x.dtype() == Dtype::float32 && axis + 1 < x.rank() &&
                         shape.back() % block_of(Dtype::q8_0) == 0;
  const Dtype dtype = in_blocks ? tape.caches() : x.dtype();
  const Var state = tape.input("cache " + std::to_string(tape.states().size()), shape, dtype);
  const Vars outputs = record_call(tape, self, {x, state, past}, attributes);
  tape.add_state(state, outputs[0]);
  return in_blocks ? Vars{dequantize(outputs[0])} : outputs;
}

/// The rows of all examples become rows of a single cache.
Vars batch_cache(const BatchCall& call) {
  Vars rows;
  for (const Var& each : call.all_whole()) {  // [examples, b, …]
    Shape shape = each.shape();
    shape.erase(0);
    shape[0] *= call.size;  // no overflow, because the tape has the array
    rows.push_back(reshape(each, shape));
  }
  Shape shape = call.node.outputs[0].shape;
  shape.insert(0, call.size);
  const auto axis = static_cast<std::int64_t>(normal_axis(call.integer("axis"), rows[0].rank()));
  return {reshape(record_call(call.tape, call.op, rows, {{"axis", axis}})[0], shape)};
}

const Op& cache_op() {
  static const Op entry{
      .name = "cache",
      .doc = R"(Stores the current piece of the input after the earlier pieces and returns all pieces, for models that
           read their input piece by piece. Writes x [b, t, …] to the positions past[row] … past[row] + t - 1 of `state`
           [b, capacity, …], and returns the whole state. Positions beyond the capacity are dropped. Definitions pass x
           alone. In mode predict, if x has a past, the op then adds the state to the tape as an input, which players
           carry from play to play. Otherwise the result is x itself, and nothing is recorded. `past` is int64 [b]. A
           state of dtype Q8_0 rounds float32 pieces.)",
      .inputs = {{"x", Accept::any},
                 {"state", Accept::any, Arity::optional},
                 {"past", Accept::integer, Arity::optional}},
      .attributes = {{"axis", AttributeType::integer,
                      "The axis along which the pieces follow one another. It must not be 0, the axis of the rows.",
                      std::int64_t{1}}},
      .shape = +[](const OpCall& call) -> std::vector<ValueType> {
        if (call.inputs.size() != 3) throw Error("takes x alone, or x with a state and a past");
        const std::size_t axis = normal_axis(call.integer("axis"), call.shape(0).size());
        if (axis == 0)
          throw ShapeError("axis 0 is the axis of the rows: the pieces must follow one another along another axis");
        Shape wanted = call.shape(0);
        if (call.shape(1).size() == wanted.size()) wanted[axis] = call.shape(1)[axis];
        const bool rounds = call.dtype(1) == Dtype::q8_0 && call.dtype(0) == Dtype::float32 &&
                            axis + 1 < wanted.size() && wanted.back() % block_of(Dtype::q8_0) == 0;
        if (call.inputs[1] != ValueType{rounds ? Dtype::q8_0 : call.dtype(0), wanted})
          throw ShapeError("a state of type " + to_string(call.inputs[1]) + " cannot hold pieces of type " +
                           to_string(call.inputs[0]) + " along axis " + std::to_string(axis));
        if (call.inputs[2] != ValueType{Dtype::int64, {call.shape(0)[0]}})
          throw ShapeError("the past must be int64, one number for each of the " + std::to_string(call.shape(0)[0]) +
                           " rows, not " + to_string(call.inputs[2]));
        return {call.inputs[1]};
      },
      .batch = batch_cache,
      .record = record_cache,
      .differentiable = false,
      .lowering = {.kernel = cache_kernel,
                   .overwrites = {1},
                   .dtypes = {.any = true, .blocks = +[](const OpCall& call) { return !is_block(call.dtype(0)); }},
                   .cost = {.part = 0}}};
  return entry;
}
}  // namespace

Var stop_gradient(const Argument& x) {
  return apply(stop_gradient_op(), {x})[0];
}
Var cache(const Argument& x, std::int64_t axis) {
  return apply(cache_op(), {x}, {{"axis", axis}})[0];
}

Var watch(const Argument& x, const Var& condition) {
  return apply(watch_op(), {x, condition})[0];
}

void list_control(OpTable& table) {
  for (const Op* op : {&stop_gradient_op(), &watch_op(), &cache_op()}) table.add(*op);
}

}  // namespace xtape
