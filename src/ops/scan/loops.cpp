// while_loop and cond, which are recorded as conditional scans.
#include "xtape/loops.hpp"

#include "ops/scan/scan.hpp"
#include "tape/calls.hpp"

namespace xtape {

namespace {
/// Throws if a var does not belong to the tape.
void check_tape(const Tape& tape, const Vars& vars, const std::string& what) {
  for (const Var& var : vars)
    if (var.tape() != tape) throw HandleError(what + " of another tape");
}

/// Returns a bool of one element as a bool of rank 0.
Var one_bool(const Var& flag, const std::string& what) {
  if (flag.dtype() != Dtype::boolean) throw DtypeError(what + " must be one bool, got " + to_string(flag.type()));
  if (count_of(flag.shape()) != 1) throw ShapeError(what + " must be one bool, got " + to_string(flag.type()));
  return reshape(flag, {});
}

/// Calls one of the user's functions. Its nodes get the source locations of the function's own calls.
template <class Function>
auto called(Tape tape, const Function& function, const Vars& vars) {
  const auto out_of_call = tape.out_of_call();
  return function(vars);
}

/// Records one step that takes place if `flag` is true.
Scanned record_if(const Var& flag, const ScanFunction& cell, const Vars& init) {
  ScanOptions options;
  options.axis = 0;
  return record_scan(flag.tape(), cell, {reshape(flag, {1})}, init, options, {.name = "cond", .conditional = true});
}
}  // namespace

Looped while_loop(const std::function<Var(const Vars&)>& condition, const std::function<Vars(const Vars&)>& body,
                  const Vars& init, std::int64_t max_steps, Caller caller) {
  at_place(caller, [&] {
    if (!condition || !body) throw Error("while_loop: the condition or the body is empty");
    if (init.empty()) throw Error("while_loop: needs at least one state");
    if (max_steps < 0) throw Error("while_loop: max_steps must not be negative, got " + std::to_string(max_steps));
  });
  Tape tape = init[0].tape();
  return all_or_nothing(tape, &scan_op(), caller, [&] {
    check_tape(tape, init, "while_loop: a state is");
    const auto holds = [&](const Vars& states) {
      const Var flag = called(tape, condition, states);
      check_tape(tape, {flag}, "while_loop: the condition is");
      return one_bool(flag, "while_loop: the condition");
    };
    Vars first{holds(init), zeros(tape, {}, Dtype::int64)};
    first.insert(first.end(), init.begin(), init.end());
    const ScanFunction cell = [&](const Vars&, const Vars& before) {
      const Vars states(before.begin() + 2, before.end());
      const Vars next = called(tape, body, states);
      check_tape(tape, next, "while_loop: the body returned a var");
      if (next.size() != states.size())
        throw Error("while_loop: the body must return " + std::to_string(states.size()) + " states, it returned " +
                    std::to_string(next.size()));
      for (std::size_t i = 0; i < next.size(); ++i)
        if (next[i].type() != states[i].type())
          throw ShapeError("while_loop: next state " + std::to_string(i) + " must be " + to_string(states[i].type()) +
                           " like the state, the body returned " + to_string(next[i].type()));
      Vars after{holds(next), before[1] + 1};
      after.insert(after.end(), next.begin(), next.end());
      return std::make_pair(Vars{}, after);
    };
    ScanOptions options;
    options.axis = 0;
    const Vars last =
        record_scan(tape, cell, {}, first, options, {.name = "while_loop", .length = max_steps, .conditional = true})
            .states;
    return Looped{Vars(last.begin() + 2, last.end()), last[1], last[0]};
  });
}

Vars cond(const Var& predicate, const std::function<Vars(const Vars&)>& if_true,
          const std::function<Vars(const Vars&)>& if_false, const Vars& inputs, Caller caller) {
  at_place(caller, [&] {
    if (!if_true || !if_false) throw Error("cond: a branch is empty");
  });
  Tape tape = predicate.tape();
  return all_or_nothing(tape, &scan_op(), caller, [&] {
    check_tape(tape, inputs, "cond: an input is");
    const Var flag = one_bool(predicate, "cond: the predicate");
    const auto branch = [&](const std::function<Vars(const Vars&)>& function) {
      const Vars results = called(tape, function, inputs);
      check_tape(tape, results, "cond: a branch returned a var");
      if (results.empty()) throw Error("cond: a branch gives no result");
      return results;
    };
    // The results are zeros if the branch is not taken. The other branch starts from these results.
    Vars results =
        record_if(flag, [&](const Vars&, const Vars&) { return std::make_pair(branch(if_true), Vars{}); }, {}).outputs;
    for (Var& result : results) result = squeeze(result, {0});
    const ScanFunction otherwise = [&](const Vars&, const Vars& states) {
      const Vars others = branch(if_false);
      bool same = others.size() == states.size();
      for (std::size_t i = 0; same && i < others.size(); ++i) same = others[i].type() == states[i].type();
      const auto list = [](const Vars& vars) {
        std::string text;
        for (const Var& var : vars) text += (text.empty() ? "" : ", ") + to_string(var.type());
        return text;
      };
      if (!same)
        throw ShapeError("cond: both branches must give results of the same types, got " + list(states) +
                         " if true and " + list(others) + " if false");
      return std::make_pair(Vars{}, others);
    };
    return record_if(logical_not(flag), otherwise, results).states;
  });
}

}  // namespace xtape
