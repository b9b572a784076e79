// The check that a program written as a definition computes the same.
#include "differences.hpp"
#include "oracles.hpp"
#include "print.hpp"
#include "record.hpp"
#include "xtape/model.hpp"

namespace xtape::fuzz {

namespace {
bool draws(const Tape& tape) {
  for (std::size_t i = 0; i < tape.size(); ++i)
    if (tape.node(i).op->random || (tape.node(i).body && draws(*tape.node(i).body))) return true;
  return false;
}

const Step* source_of(const std::vector<Step>& steps, int id) {
  for (const Step& step : steps) {
    if (step.id == id) return &step;
    for (const Block& block : step.body)
      if (const Step* found = source_of(block.steps, id)) return found;
  }
  return nullptr;
}
}  // namespace

Check same_as_definition() {
  return {"the definition computes the same", [](Trial& trial) -> std::optional<std::string> {
            if (!trial.recipe().program) return std::nullopt;
            const Program& program = *trial.recipe().program;
            if (program.mode == Mode::predict) return std::nullopt;  // the caller has to feed the past
            Subject subject(program.mode, Floats::as_written);
            Recorder recorder(subject);
            for (const Step& step : program.steps) recorder.record(step);
            // Random numbers depend on the site of a call, which is another in a definition.
            if (draws(subject.tape)) return std::nullopt;
            const Definition definition = definition_of(program);
            if (definition.results.empty()) return std::nullopt;
            ModelOptions options;
            options.ops = &ops();
            const Model model = Model::parse(definition.text, options);
            Tape tape(program.mode);
            NamedVars inputs = model.inputs(tape, "f", {});
            const NamedVars results = model.record(tape, "f", inputs);
            Vars direct, parsed;
            for (const Ref ref : definition.results) direct.push_back(recorder.at(ref));
            for (const auto& [name, var] : results) parsed.push_back(var);
            std::vector<Array> arrays;
            for (const int id : definition.inputs) {
              const Step& source = *source_of(program.steps, id);
              arrays.push_back(made(source.type, source.numbers, 0));
            }
            std::vector<Feed> feeds;
            for (std::size_t i = 0; i < inputs.size(); ++i) feeds.emplace_back(inputs[i].value, arrays[i]);
            PlayerOptions reference;
            reference.threads = 1;
            reference.passes = Passes::reference();
            Player of_program(subject.tape, direct, reference), of_definition(tape, parsed, reference);
            of_program.play(subject.feeds(0), 0);
            of_definition.play(feeds, 0);
            for (std::size_t k = 0; k < direct.size(); ++k) {
              const Array x(of_definition.view(parsed[k])), y(of_program.view(direct[k]));
              if (x.dtype() != y.dtype() || x.shape() != y.shape())
                return results[k].name + " is " + to_string(ValueType{x.dtype(), x.shape()}) + ", recorded as " +
                       to_string(ValueType{y.dtype(), y.shape()});
              if (const auto difference = furthest(x, y, x.dtype() == Dtype::float32 ? 1e-4 : 1e-10))
                return results[k].name + ": " + difference->described("definition", "program");
            }
            return std::nullopt;
          }};
}

}  // namespace xtape::fuzz
