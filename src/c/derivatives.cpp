// Derivatives, batches and loops: what records nodes from nodes.
#include "xtape/derivatives.hpp"

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "c/values.hpp"
#include "xtape/grad.hpp"
#include "xtape/scan.hpp"
#include "xtape/vmap.hpp"

namespace xtape::c {

namespace {
/// A callback as a function of vars. `capacity` is the most results that it may have.
std::function<Vars(const Vars&)> recorded_by(const TapeObject& tape, xtape_function function, void* context) {
  if (function == nullptr) throw Error("'function' is null");
  return [&tape, function, context](const Vars& inputs) {
    constexpr std::size_t most = 256;
    std::vector<xtape_var> given, results(most);
    for (const Var& input : inputs) given.push_back(tape.from(input));
    std::size_t count = 0;
    call_back([&] { return function(context, given.data(), given.size(), results.data(), most, &count); });
    if (count > most) throw Error("the callback has " + std::to_string(count) + " results, more than its capacity");
    return tape.vars(results.data(), count, "results of the callback");
  };
}

VmapOptions vmap_options(const char* text) {
  Options options(text);
  VmapOptions vmap;
  const auto axes = [&](const char* key, bool optional, const auto& add) {
    const Json& list = options->value(key);
    if (list.is_null()) return;
    if (!list.is_array()) options->fail(key, "must be a list of axes");
    for (const Json& axis : list) {
      if (!axis.is_number_integer() && !(optional && axis.is_null()))
        options->fail(key, optional ? "must have integers and null" : "must have integers");
      add(axis);
    }
  };
  axes("in_axes", true, [&](const Json& axis) {
    vmap.in_axes.push_back(axis.is_null() ? std::nullopt : std::optional(axis.get<std::int64_t>()));
  });
  axes("out_axes", false, [&](const Json& axis) { vmap.out_axes.push_back(axis.get<std::int64_t>()); });
  options->read("randomness", vmap.randomness, {"different", "same"});
  options.done();
  return vmap;
}

ScanOptions scan_options(const char* text) {
  Options options(text);
  ScanOptions scan;
  options->read("axis", scan.axis, {-XTAPE_MAX_RANK, XTAPE_MAX_RANK});
  options->read("reverse", scan.reverse);
  const Json& every = options->value("checkpoint_every");
  if (!every.is_null()) {
    if (!every.is_array()) options->fail("checkpoint_every", "must be a list of integers");
    for (const Json& each : every) {
      if (!each.is_number_integer()) options->fail("checkpoint_every", "must be a list of integers");
      scan.checkpoint_every.push_back(each.get<std::int64_t>());
    }
  }
  options.done();
  return scan;
}

JacobianOptions jacobian_options(const char* text) {
  Options options(text);
  JacobianOptions jacobian;
  options->read("mode", jacobian.mode, {"automatic", "forward", "reverse"});
  options->read("chunk_size", jacobian.chunk_size);
  options.done();
  return jacobian;
}
}  // namespace
}  // namespace xtape::c

using namespace xtape::c;
using xtape::Vars;

xtape_status xtape_grad(xtape_tape* tape, const xtape_var* outputs, size_t output_count, const xtape_var* inputs,
                        size_t input_count, const xtape_var* cotangents, const char* options,
                        xtape_var* gradients) noexcept {
  return guarded("xtape_grad", [&] {
    const Used<TapeObject> object = use<TapeObject>(tape, "tape");
    Options given(options);
    xtape::GradOptions how;
    given->read("allow_unused", how.allow_unused);
    given->read("materialize_grads", how.materialize_grads);
    given->read("sum_outputs", how.sum_outputs);
    given.done();
    const Vars along = cotangents == nullptr ? Vars() : object->vars(cotangents, output_count, "cotangents");
    object->record(
        [&] {
          return grad(object->vars(outputs, output_count, "outputs"), object->vars(inputs, input_count, "inputs"),
                      along, how, caller());
        },
        gradients, input_count, nullptr);
  });
}

xtape_status xtape_jvp(xtape_tape* tape, const xtape_var* outputs, size_t output_count, const xtape_var* inputs,
                       size_t input_count, const xtape_var* tangents, xtape_var* results) noexcept {
  return guarded("xtape_jvp", [&] {
    const Used<TapeObject> object = use<TapeObject>(tape, "tape");
    object->record(
        [&] {
          return jvp(object->vars(outputs, output_count, "outputs"), object->vars(inputs, input_count, "inputs"),
                     object->vars(tangents, input_count, "tangents"), caller());
        },
        results, output_count, nullptr);
  });
}

xtape_status xtape_jacobian(xtape_tape* tape, xtape_var output, const xtape_var* inputs, size_t input_count,
                            const char* options, xtape_var* jacobians) noexcept {
  return guarded("xtape_jacobian", [&] {
    const Used<TapeObject> object = use<TapeObject>(tape, "tape");
    object->record(
        [&] {
          return jacobian(object->var(output, "output"), object->vars(inputs, input_count, "inputs"),
                          jacobian_options(options), caller());
        },
        jacobians, input_count, nullptr);
  });
}

xtape_status xtape_hessian(xtape_tape* tape, xtape_var output, xtape_var input, const char* options,
                           xtape_var* result) noexcept {
  return guarded("xtape_hessian", [&] {
    const Used<TapeObject> object = use<TapeObject>(tape, "tape");
    object->record(
        [&] {
          return Vars{xtape::hessian(object->var(output, "output"), object->var(input, "input"),
                                     jacobian_options(options), caller())};
        },
        result, 1, nullptr);
  });
}

xtape_status xtape_vmap(xtape_tape* tape, xtape_function function, void* context, const xtape_var* inputs,
                        size_t input_count, const char* options, xtape_var* results, size_t capacity,
                        size_t* count) noexcept {
  return guarded("xtape_vmap", [&] {
    const Used<TapeObject> object = use<TapeObject>(tape, "tape");
    object->record(
        [&] {
          return vmap(recorded_by(*object, function, context), object->vars(inputs, input_count, "inputs"),
                      vmap_options(options), caller());
        },
        results, capacity, count);
  });
}

xtape_status xtape_scan(xtape_tape* tape, xtape_function cell, void* context, const xtape_var* inputs,
                        size_t input_count, const xtape_var* states, size_t state_count, const char* options,
                        xtape_var* results, size_t capacity, size_t* count) noexcept {
  return guarded("xtape_scan", [&] {
    const Used<TapeObject> object = use<TapeObject>(tape, "tape");
    const auto function = recorded_by(*object, cell, context);
    const auto step = [&](const Vars& slices, const Vars& before) {
      Vars given = slices;
      given.insert(given.end(), before.begin(), before.end());
      const Vars all = function(given);
      if (all.size() < before.size())
        throw xtape::Error("the cell has " + std::to_string(all.size()) + " results, fewer than the " +
                           std::to_string(before.size()) + " states");
      const auto next = all.end() - static_cast<std::ptrdiff_t>(before.size());
      return std::pair(Vars(all.begin(), next), Vars(next, all.end()));
    };
    object->record(
        [&] {
          xtape::Scanned scanned = scan(step, object->vars(inputs, input_count, "inputs"),
                                        object->vars(states, state_count, "states"), scan_options(options), caller());
          scanned.outputs.insert(scanned.outputs.end(), scanned.states.begin(), scanned.states.end());
          return scanned.outputs;
        },
        results, capacity, count);
  });
}

xtape_status xtape_checkpoint(xtape_tape* tape, xtape_function function, void* context, const xtape_var* inputs,
                              size_t input_count, xtape_var* results, size_t capacity, size_t* count) noexcept {
  return guarded("xtape_checkpoint", [&] {
    const Used<TapeObject> object = use<TapeObject>(tape, "tape");
    object->record(
        [&] {
          return checkpoint(recorded_by(*object, function, context), object->vars(inputs, input_count, "inputs"),
                            caller());
        },
        results, capacity, count);
  });
}
