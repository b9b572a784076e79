#include "record.hpp"

#include "ops/scan/scan.hpp"
#include "tape/calls.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops.hpp"

namespace xtape::fuzz {

std::map<std::string, std::size_t> ops_in(const std::vector<Step>& steps) {
  std::map<std::string, std::size_t> counts;
  for (const Step& step : steps) {
    if (!step.is_source()) ++counts[step.op];
    for (const Block& block : step.body)
      for (const auto& [op, times] : ops_in(block.steps)) counts[op] += times;
  }
  return counts;
}

std::size_t calls_in(const std::vector<Step>& steps) {
  std::size_t calls = 0;
  for (const auto& [op, times] : ops_in(steps)) calls += times;
  return calls;
}

bool Recorder::has(Ref ref) const {
  const auto found = values_.find(ref.step);
  return found != values_.end() && ref.output >= 0 && static_cast<std::size_t>(ref.output) < found->second.size();
}

const Var& Recorder::at(Ref ref) const {
  if (!has(ref))
    throw HandleError("the program has no value " + std::to_string(ref.step) + "." + std::to_string(ref.output));
  return values_.at(ref.step)[static_cast<std::size_t>(ref.output)];
}

Vars Recorder::vars_of(const std::vector<Term>& terms) const {
  Vars vars;
  for (const Term& term : terms) vars.push_back(at(std::get<Ref>(term)));
  return vars;
}

void Recorder::set(int step, const Vars& values) {
  values_[step] = values;
  for (std::size_t i = 0; i < values.size(); ++i) types_[{step, static_cast<int>(i)}] = values[i].type();
}

const Vars& Recorder::record(const Step& step) {
  set(step.id, recorded(step));
  return values_[step.id];
}

Vars Recorder::recorded(const Step& step) {
  if (step.op == "input") return {subject_.input(step.type, step.numbers)};
  if (step.op == "parameter") return {subject_.parameter(step.type, step.numbers)};
  if (step.op == "constant") return {subject_.constant(step.type, step.numbers)};
  if (step.op == "tokens")
    return {subject_.tokens(step.type.shape, step.attributes.get<std::int64_t>("capacity"), step.numbers)};
  if (step.op == "checkpoint")
    return record_checkpoint(step, [&](const Vars& arguments) { return run(step.body[0], arguments); });
  if (step.op == "scan")
    return record_scan(step, [&](const Vars& slices, const Vars& states) {
      Vars arguments = slices;
      arguments.insert(arguments.end(), states.begin(), states.end());
      const Vars results = run(step.body[0], arguments);
      const auto next = results.end() - static_cast<std::ptrdiff_t>(states.size());
      return std::pair(Vars(results.begin(), next), Vars(next, results.end()));
    });
  if (step.op == "grad") {
    const Vars vars = vars_of(step.operands);
    const auto outputs = vars.begin() + step.attributes.get<std::int64_t>("outputs");
    const auto inputs = outputs + step.attributes.get<std::int64_t>("inputs");
    return grad(Vars(vars.begin(), outputs), Vars(outputs, inputs), Vars(inputs, vars.end()),
                {.materialize_grads = true});
  }
  std::vector<Operand> operands;
  for (const Term& term : step.operands) {
    if (const auto* ref = std::get_if<Ref>(&term))
      operands.emplace_back(at(*ref));
    else if (const auto* whole = std::get_if<std::int64_t>(&term))
      operands.emplace_back(*whole);
    else
      operands.emplace_back(std::get<double>(term));
  }
  return subject_.call(step.op, operands, step.attributes);
}

const Vars& Recorder::record_checkpoint(const Step& step, const std::function<Vars(const Vars&)>& function) {
  set(step.id, checkpoint(function, vars_of(step.operands)));
  return values_[step.id];
}

namespace {
/// A scan that does not play the steps that are not valid. Its values are those of a scan that does.
Scanned skipping(const ScanFunction& cell, Vars sequences, const Vars& init, ScanOptions options) {
  sequences.insert(sequences.begin(), options.valid);
  options.valid = {};
  const ScanFunction inner = [&](const Vars& slices, const Vars& states) {
    return cell(Vars(slices.begin() + 1, slices.end()), states);
  };
  Tape tape = sequences[0].tape();
  const std::size_t size = tape.size();
  try {
    return as_call(tape, &scan_op(), Caller::here(),
                   [&] { return record_scan(tape, inner, sequences, init, options, {.conditional = true}); });
  } catch (...) {
    tape.truncate(size);
    throw;
  }
}
}  // namespace

const Vars& Recorder::record_scan(const Step& step, const ScanFunction& cell) {
  const Vars vars = vars_of(step.operands);
  ScanOptions options;
  options.axis = step.attributes.get<std::int64_t>("axis");
  options.reverse = step.attributes.get<bool>("reverse");
  auto last = vars.end();
  if (step.attributes.get<bool>("valid")) options.valid = *--last;
  const auto states = vars.begin() + step.attributes.get<std::int64_t>("sequences");
  const Vars sequences(vars.begin(), states), init(states, last);
  const bool whole_steps = !options.valid.empty() && options.valid.rank() == 1 && subject_.tape.capacity() == 0;
  const Scanned scanned = whole_steps ? skipping(cell, sequences, init, options) : scan(cell, sequences, init, options);
  Vars results = scanned.outputs;
  results.insert(results.end(), scanned.states.begin(), scanned.states.end());
  set(step.id, results);
  return values_[step.id];
}

Vars Recorder::run(const Block& block, const Vars& arguments) {
  for (std::size_t i = 0; i < block.arguments.size(); ++i) set(block.arguments[i], {arguments.at(i)});
  for (const Step& step : block.steps) record(step);
  Vars results;
  for (Ref ref : block.results) results.push_back(at(ref));
  return results;
}

std::map<Ref, ValueType> record(const Program& program, Subject& subject) {
  Recorder recorder(subject);
  for (const Step& step : program.steps) recorder.record(step);
  for (Ref ref : program.outputs) subject.give(recorder.at(ref));
  for (const auto& [input, output] : program.carries) subject.carry(recorder.at({input, 0}), recorder.at(output));
  subject.carry_states();
  return recorder.types();
}

Recipe recipe_of(const Program& program) {
  const auto own = std::make_shared<const Program>(program);
  return {program.mode, [own](Subject& subject) { record(*own, subject); }, own};
}

}  // namespace xtape::fuzz
