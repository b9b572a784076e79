// A definition: reads it, records its functions and prints the tape.
#include "model/definition/definition.hpp"

#include <sstream>

#include "target.hpp"
#include "xtape/model.hpp"
#include "xtape/tape.hpp"

namespace xtape::fuzz {

namespace {
std::string recorded(const Model& model, const std::string& function) {
  Tape tape;
  const auto inputs = accepted([&] {
    NamedSizes sizes;
    for (const char* name : {"b", "t", "n", "d", "s"}) sizes.add(name, 2);
    return model.inputs(tape, function, sizes);
  });
  if (!inputs || !accepted([&] { return model.record(tape, function, *inputs); })) return "";
  std::ostringstream text;
  text << tape;
  return text.str();
}
}  // namespace

void definition(Input input) {
  ModelOptions options;
  options.initialise = false;
  const std::string text(input);
  const auto model = accepted([&] { return std::make_shared<Model>(Model::parse(text, options)); });
  if (!model) return;
  const Model again = Model::parse((*model)->definition_text(), options);
  require(again.functions() == (*model)->functions(), "a definition that is written and read has the same functions");
  require(again.parameter_count() == (*model)->parameter_count(),
          "a definition that is written and read has as many parameters");
  for (const std::string& function : (*model)->functions()) {
    const std::string tape = recorded(**model, function);
    require(recorded(**model, function) == tape, "a function that is recorded twice gives the same tape");
    require(recorded(again, function) == tape, "a definition that is written and read gives the same tapes");
  }
}

}  // namespace xtape::fuzz
