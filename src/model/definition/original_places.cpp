// Finds the lines of a definition in the file from which the definition was copied.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "model/language/interpreter.hpp"
#include "model/recording/model_data.hpp"

namespace xtape::model {

namespace {
/// Returns the value in the form of an override of a hyper-parameter.
std::string override_text(const Value& value) {
  if (const auto* number = value.as<double>(); number != nullptr && std::isfinite(*number)) return Json(*number).dump();
  return xtape::to_string(*hyper_value(value));
}

class Pairing {
 public:
  explicit Pairing(std::map<const Computation*, OriginalPlace>& places) : places_(places) {}

  void pair(const Definition& copy, const Definition& original) {
    if (!done_.insert(&copy).second) return;
    for (const auto& block : copy.blocks)
      if (const Block* found = own_block(original, block->name))
        add(block->computation, found->computation, found->location.file);
    for (const Function& function : copy.functions)
      if (const Function* found = original.find_function(function.name))
        add(function.computation, found->computation, found->location.file);
    for (std::size_t i = 0; i < std::min(copy.used.size(), original.used.size()); ++i)
      pair(*copy.used[i].file, *original.used[i].file);
  }

 private:
  static const Block* own_block(const Definition& definition, const std::string& name) {
    for (const auto& block : definition.blocks)
      if (block->name == name) return block.get();
    return nullptr;
  }

  void add(const Computation& copy, const Computation& original, const std::string& file) {
    OriginalPlace& place = places_[&copy];
    place.file = file;
    const auto pair = [&](const Line& from, const Line& to) {
      place.lines[from.location.line] = to.location.line;
      if (to.location.file != file) place.files[from.location.line] = to.location.file;
    };
    for (std::size_t i = 0; i < std::min(copy.lines.size(), original.lines.size()); ++i)
      pair(copy.lines[i], original.lines[i]);
    for (std::size_t i = 0; i < std::min(copy.results.size(), original.results.size()); ++i)
      pair(copy.results[i].second, original.results[i].second);
  }

  std::map<const Computation*, OriginalPlace>& places_;
  std::set<const Definition*> done_;
};
}  // namespace

void find_original(ModelContext& context, const std::string& file) try {
  ModelContext original;
  original.definition = read_definition(file);
  original.ops = context.ops;
  original.dtype = context.dtype;
  original.max_steps = context.max_steps;
  std::vector<std::pair<std::string, std::string>> hyper;
  for (const Parameter& each : context.definition->hyper)
    hyper.emplace_back(each.name, override_text(context.hyper.at(context.definition.get()).at(each.name)));
  resolve_hyper(original, hyper);
  if (self_contained(original) != self_contained(context)) return;
  Pairing(context.originals).pair(*context.definition, *original.definition);
} catch (const Error&) {  // the file no longer exists or is no longer a definition
}

LineScopes scopes_of(const ModelContext& context, const std::string& path, const Location& location,
                     const std::string& what, const Computation& computation) {
  const auto found = context.originals.find(&computation);
  const OriginalPlace place = found == context.originals.end() ? OriginalPlace{location.file, {}, {}} : found->second;
  std::map<std::string, std::shared_ptr<const Scope>> scopes;
  const auto in = [&](const std::string& file) {
    auto& scope = scopes[file];
    if (!scope) scope = std::make_shared<const Scope>(Scope{path, file + ", " + what, place.lines});
    return scope;
  };
  LineScopes made{in(place.file)};
  const auto add = [&](const Line& line) {
    const auto other = place.files.find(line.location.line);
    const bool original = found != context.originals.end();
    const std::string& file = original ? (other == place.files.end() ? place.file : other->second) : line.location.file;
    if (file != place.file) made.others[&line] = in(file);
  };
  for (const Line& line : computation.lines) add(line);
  for (const auto& result : computation.results) add(result.second);
  return made;
}

}  // namespace xtape::model
