// scan(cell, x, …, init=…): applies a module or a function step by step along an axis.
#include "model/language/interpreter.hpp"
#include "xtape/scan.hpp"

namespace xtape::model {

namespace {
/// The arguments of a call of `scan` other than its cell.
struct ScanCall {
  Vars inputs;
  Vars init;
  Tuple non_sequences;  ///< Arguments that every step receives unchanged.
  ScanOptions options;
};

template <class T>
T setting(const Arguments::Named& given, const char* wanted) {
  if (const T* value = given.value.as<T>()) return *value;
  throw Error("scan: '" + given.name + "' must be " + wanted + ", not " + describe(given.value));
}

std::vector<std::int64_t> lengths(Arguments::Named given) {
  std::vector<std::int64_t> found;
  const Tuple* several = given.value.as<Tuple>();
  for (const Value& each : several != nullptr ? Tuple(*several) : Tuple{given.value}) {
    given.value = each;
    found.push_back(setting<std::int64_t>(given, "an integer or a tuple of integers"));
  }
  return found;
}

ScanCall scan_call(const Arguments& arguments) {
  ScanCall call;
  for (std::size_t i = 1; i < arguments.positional.size(); ++i) {
    const Vars sequences = arrays_of("scan: a sequence", arguments.positional[i].value);
    call.inputs.insert(call.inputs.end(), sequences.begin(), sequences.end());
  }
  for (const auto& given : arguments.named) {
    if (given.name == "init") {
      if (!given.value.is_none()) call.init = arrays_of("scan: 'init'", given.value);
    } else if (given.name == "non_sequences") {
      if (const Tuple* several = given.value.as<Tuple>())
        call.non_sequences = *several;
      else
        call.non_sequences.push_back(given.value);
    } else if (given.name == "axis") {
      call.options.axis = setting<std::int64_t>(given, "an integer");
    } else if (given.name == "reverse") {
      call.options.reverse = setting<bool>(given, "a flag");
    } else if (given.name == "valid") {
      if (!given.value.is_none()) call.options.valid = setting<Var>(given, "an array");
    } else if (given.name == "checkpoint_every") {
      if (!given.value.is_none()) call.options.checkpoint_every = lengths(given);
    } else {
      throw Error(
          "scan has no '" + given.name + "'" +
          nearest_or_all(given.name, {"init", "non_sequences", "axis", "reverse", "valid", "checkpoint_every"}));
    }
  }
  return call;
}
}  // namespace

/// The cell must return the outputs first, followed by one next state for each state.
Value Interpreter::scan_function(const Expression& expression, const At& at) {
  const Arguments arguments = arguments_of(expression, at);
  return guarded(at, expression.column, [&]() -> Value {
    const Value& given = given_function("scan", arguments);
    const ScanCall call = scan_call(arguments);
    const std::size_t column = arguments.positional[0].column;
    const ScanFunction cell = [&](const Vars& inputs, const Vars& states) {
      Arguments step;
      for (const Vars* vars : {&inputs, &states})
        for (const Var& var : *vars) step.positional.push_back({var, column});
      for (const Value& value : call.non_sequences) step.positional.push_back({value, column});
      const Vars results = arrays_of("scan: the result of the cell", call_value(given, column, step, at));
      if (results.size() < states.size())
        throw Error("scan: the cell gives " + std::to_string(results.size()) + " results, but there are " +
                    std::to_string(states.size()) + " states");
      const auto next = results.end() - std::ssize(states);
      return std::make_pair(Vars(results.begin(), next), Vars(next, results.end()));
    };
    const Scanned scanned = [&] {
      const Inside inside(*this);
      return scan(cell, call.inputs, call.init, call.options);
    }();
    Tuple results(scanned.outputs.begin(), scanned.outputs.end());
    results.insert(results.end(), scanned.states.begin(), scanned.states.end());
    return returned(given, results.size() == 1 ? results[0] : Value(results));
  });
}

}  // namespace xtape::model
