// Makes a model's parts from its definition.
#include <algorithm>

#include "evaluator.hpp"
#include "nearest.hpp"
#include "part.hpp"
#include "usage.hpp"

namespace xtape::model {

namespace {
constexpr std::int64_t most_elements = std::int64_t{1} << 40;  // of one weight: more is a mistake in a shape
constexpr std::int64_t most_parts = 1 << 18;                   // a definition of forty blocks can ask for 2^40

class Builder {
 public:
  explicit Builder(World& world) : world_(world), evaluator_(world) {}

  std::unique_ptr<Part> root() {
    const Definition& definition = *world_.definition;
    auto part = std::make_unique<Part>();
    part->block = definition.model.get();
    part->scope = std::make_shared<const Scope>(Scope{"", definition.file + ", model"});
    fill(*part);
    return part;
  }

 private:
  struct Context {
    const Part* part;  ///< Where the part's description stands.
    Values locals;
  };

  Frame frame(const Context& context) const { return {context.part->block->home, context.part, false, context.locals}; }

  void fill(Part& part) {
    for (const WeightSpec& spec : part.block->weights) part.weights.push_back(make_weight(part, spec));
    for (const PartSpec& spec : part.block->parts) {
      if (!spec.given) {
        part.parts.push_back(make_list(part, spec, spec, {&part, {}}));
        continue;
      }
      const GivenPart& given = part.given.at(spec.name);
      part.parts.push_back(make_list(part, spec, *given.spec, {given.giver, given.locals}));
    }
  }

  Weight make_weight(const Part& part, const WeightSpec& spec) {
    const Frame names{part.block->home, &part, false, {}};
    Weight weight;
    weight.spec = &spec;
    weight.initialiser.name = spec.choice ? chosen_initialiser(*spec.choice, names) : spec.init;
    if (spec.when && !evaluator_.flag(*spec.when, names)) return weight;
    std::int64_t count = 1;
    for (const Line& size : spec.shape) {
      weight.shape.push_back(evaluator_.integer(size, names));
      if (weight.shape.back() < 1)
        size.fail(size.value.column, "a size is at least 1, not " + std::to_string(weight.shape.back()));
      if (weight.shape.back() > most_elements / count)
        size.fail(size.value.column, "the weight would have more than 2^40 elements: " + to_string(weight.shape));
      count *= weight.shape.back();
    }
    for (const auto& [known, initial] : *initialiser_settings(weight.initialiser.name))
      for (const auto& [name, line] : spec.settings)
        if (name == known) weight.initialiser.settings.emplace_back(name, evaluator_.number(line, names));
    weight.path = part.path.empty() ? spec.name : part.path + "." + spec.name;
    Array array(world_.dtype, weight.shape);
    if (world_.initialise) initialise(array, weight.initialiser, world_.seed, weight.path);
    world_.store.add(weight.path, array);
    return weight;
  }

  /// `declared` is where the owner's block names the part, `spec` what it is: the same, unless the part was given.
  PartList make_list(const Part& owner, const PartSpec& declared, const PartSpec& spec, const Context& context) {
    if (std::find(making_.begin(), making_.end(), spec.identity) != making_.end())
      fail(spec.place, "part '" + spec.name + "' contains itself, by way of block '" + owner.block->name + "'");
    if (making_.size() == deepest)
      fail(spec.place,
           "parts are nested more than " + std::to_string(deepest) + " deep: '" + owner.path + "' has one more");
    making_.push_back(spec.identity);
    PartList list;
    list.spec = &spec;
    list.repeated = spec.repeat.has_value();
    const std::string path = owner.path.empty() ? declared.name : owner.path + "." + declared.name;
    if (!spec.when || evaluator_.flag(*spec.when, frame(context))) {
      const std::int64_t count = list.repeated ? evaluator_.integer(*spec.repeat, frame(context)) : 1;
      if (count < 1)
        spec.repeat->fail(spec.repeat->value.column,
                          "a part repeats at least once, not " + std::to_string(count) + " times");
      if (count > 100000) spec.repeat->fail(spec.repeat->value.column, "a part repeats at most 100000 times");
      for (std::int64_t i = 0; i < count; ++i) {
        Context inner = context;
        if (list.repeated) inner.locals["index"] = i;
        list.items.push_back(make_part(list.repeated ? path + "." + std::to_string(i) : path, spec, inner));
      }
    }
    making_.pop_back();
    return list;
  }

  /// The name that an expression behind "=" comes to.
  std::string chosen_name(const Line& choice, const Frame& names, const char* what) {
    const Value value = evaluator_.evaluate(choice, names);
    const auto* name = value.as<std::string>();
    if (name == nullptr)
      choice.fail(choice.value.column, "the name of " + std::string(what) + " belongs here, not " + describe(value));
    return *name;
  }

  std::string chosen_initialiser(const Line& choice, const Frame& names) {
    std::string name = chosen_name(choice, names, "an initialiser");
    if (initialiser_settings(name) == nullptr)
      choice.fail(choice.value.column,
                  "there is no initialiser '" + name + "'" + did_you_mean(name, initialiser_names()));
    return name;
  }

  const Block& chosen_block(const PartSpec& spec, const Context& context) {
    if (!spec.choice) return *spec.home->find_block(spec.block);
    const std::string name = chosen_name(*spec.choice, frame(context), "a block");
    const Block* block = spec.home->find_block(name);
    if (block == nullptr)
      spec.choice->fail(spec.choice->value.column,
                        "there is no block '" + name + "'" + spec.home->instead_of_block(name));
    return *block;
  }

  std::unique_ptr<Part> make_part(const std::string& path, const PartSpec& spec, const Context& context) {
    if (++count_ > most_parts)
      fail(spec.place,
           "the model has more than " + std::to_string(most_parts) + " parts, '" + path + "' with those before it");
    auto part = std::make_unique<Part>();
    const Block& block = chosen_block(spec, context);
    part->path = path;
    part->block = &block;
    part->scope = std::make_shared<const Scope>(Scope{path, block.place.file + ", block '" + block.name + "'"});
    give_parts(*part, spec, context);
    set_parameters(*part, spec, context);
    fill(*part);
    return part;
  }

  static bool takes_part(const Block& block, const std::string& name) {
    return std::any_of(block.parts.begin(), block.parts.end(),
                       [&](const PartSpec& each) { return each.given && each.name == name; });
  }

  void give_parts(Part& part, const PartSpec& spec, const Context& context) {
    const Block& block = *part.block;
    for (const PartSpec& given : spec.parts) {
      if (!takes_part(block, given.name))
        fail(given.place,
             "block '" + block.name + "' takes no part '" + given.name + "'" + did_you_mean(given.name, settable(block)));
      part.given[given.name] = {&given, context.part, context.locals};
    }
    for (const auto& [name, line] : spec.settings)
      if (takes_part(block, name)) part.given[name] = handed_on(name, line, context);
    for (const PartSpec& each : block.parts)
      if (each.given && part.given.count(each.name) == 0)
        fail(spec.place, "block '" + block.name + "' must be given its part '" + each.name + "': \"" + each.name +
                             "\": {\"block\": …}");
  }

  /// A part that was given to the block where `line` stands, and that it gives to another.
  GivenPart handed_on(const std::string& name, const Line& line, const Context& context) const {
    if (line.value.form == Form::name)
      if (const auto found = context.part->given.find(line.value.text); found != context.part->given.end())
        return found->second;
    line.fail(line.value.column,
              "a part belongs here for '" + name + "': {\"block\": …}, or the name of a part that this block is given");
  }

  static std::vector<std::string> settable(const Block& block) {
    std::vector<std::string> names = {"block", "repeat", "when", "checkpoint", "about"};
    for (const Parameter& each : block.parameters) names.push_back(each.name);
    for (const PartSpec& each : block.parts)
      if (each.given) names.push_back(each.name);
    return names;
  }

  void set_parameters(Part& part, const PartSpec& spec, const Context& context) {
    const Block& block = *part.block;
    for (const auto& [name, line] : spec.settings) {
      const auto same = [&name = name](const Parameter& each) { return each.name == name; };
      if (!takes_part(block, name) && std::none_of(block.parameters.begin(), block.parameters.end(), same))
        fail(line.place,
             "block '" + block.name + "' has no parameter '" + name + "'" + now_called(name, block.renamed, settable(block)));
    }
    for (const Parameter& parameter : block.parameters) {
      const auto same = [&](const auto& setting) { return setting.first == parameter.name; };
      const auto given = std::find_if(spec.settings.begin(), spec.settings.end(), same);
      if (given != spec.settings.end())
        part.parameters[parameter.name] = evaluator_.evaluate(given->second, frame(context));
      else if (parameter.initial)
        part.parameters[parameter.name] = evaluator_.evaluate(*parameter.initial, {block.home, &part, false, {}});
      else
        fail(spec.place, "block '" + block.name + "' needs its parameter '" + parameter.name + "'");
    }
  }

  World& world_;
  Evaluator evaluator_;
  std::int64_t count_ = 0;
  std::vector<const Json*> making_;
};
}  // namespace

const Weight* Part::find_weight(const std::string& name) const {
  for (const Weight& each : weights)
    if (each.spec->name == name) return &each;
  return nullptr;
}

const PartList* Part::find_part(const std::string& name) const {
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (block->parts[i].name == name) return &parts[i];
  return nullptr;
}

std::unique_ptr<Part> build_parts(World& world) {
  std::unique_ptr<Part> root = Builder(world).root();
  check_usage(*root, *world.definition);
  return root;
}

}  // namespace xtape::model
