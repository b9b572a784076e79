// Checks the names in every line of a definition before a model is built from the definition.
#include <algorithm>
#include <set>
#include <utility>

#include "base/messages/wording.hpp"
#include "model/definition/checks.hpp"
#include "model/definition/definition.hpp"
#include "model/hugging_face/mapping.hpp"
#include "model/language/synonyms.hpp"
#include "model/language/visible_names.hpp"
#include "xtape/op/op.hpp"

namespace xtape::model {

namespace {
using Names = std::set<std::string>;
using Warnings = std::vector<std::string>;

/// Hyper-parameters that programs read. They have an effect even if no line mentions them.
const Names programs_read = {"channels", "classes", "max_positions", "n_positions", "padding", "vocab_size"};

/// Adds the hyper-parameters of the definition that the line mentions.
void add_hyper(const Line& line, const Definition& definition, Names& used) {
  each_name(line.value, [&](const Expression& each) {
    if (definition.hyper_index.count(each.text) != 0) used.insert(each.text);
  });
}

/// Checks the names in one block or function, line by line.
class Checker {
 public:
  /// Adds the hyper-parameters that lines mention to `used`, and hidden names to `warnings`.
  Checker(const VisibleNames& names, Names& used, Warnings& warnings)
      : names_(names), used_(used), warnings_(warnings) {}

  /// Checks a size or setting. Such an expression is evaluated without a tape. It may use only the first `parameters`
  /// parameters, the hyper-parameters and the names `more`.
  void setting(const Line& line, const Names& more = {}, std::size_t parameters = all_parameters) {
    const VisibleNames visible = names_;
    const Names locals = std::exchange(locals_, more);
    names_.recording = false;
    names_.parameters = parameters;
    expression(line);
    without_quotes(line.value);
    names_ = visible;
    locals_ = locals;
  }

  /// Checks an expression whose value is the name of a block or an initialiser. `exists` says whether there is one.
  template <class Exists>
  void choice(const Line& line, const std::string& what, const Exists& exists, const Names& more = {}) {
    VisibleNames visible = names_;
    visible.recording = false;
    const std::string& name = line.value.text;
    const Meaning meaning = visible.of(name);
    const bool free = line.value.form == Form::name && more.count(name) == 0 &&
                      (meaning == Meaning::unknown || meaning == Meaning::definition);
    if (free && !exists(name))
      fail(line.location, "there is no " + what + " '" + name + "'" +
                              did_you_mean(name, what == "block" ? names_.home->block_names() : initialiser_names()));
    setting(line, more);
  }

  /// Notes a plain name that may refer to a hyper-parameter, but also to a supplied module or a size.
  void plain(const Line& line) {
    if (names_.of(line.value.text) == Meaning::hyper) used_.insert(line.value.text);
  }

  /// Checks an expression over the weights, modules and parameters of a block.
  void expression(const Line& line) {
    line_ = &line;
    visit(line.value);
  }

  void computation(const std::vector<Input>& inputs, const Computation& computation) {
    VisibleNames before = names_;  // the names that have values before any input binds a size
    before.recording = false;
    check_sizes(inputs, computation, before);
    for (const Input& input : inputs) {
      define(input.name, input.location);
      for (const Line& dim : input.dims)
        if (dim.value.form == Form::name) {
          plain(dim);
          locals_.insert(dim.value.text);
        }
    }
    for (const Input& input : inputs)
      for (const Line& dim : input.dims) expression(dim);
    for (const Line& line : computation.lines) {
      expression(line);
      for (const Target& target : line.targets) define(target.name, line.location);
    }
    for (const auto& result : computation.results) expression(result.second);
  }

 private:
  /// Adds a local. Warns if it is the first to hide a name of the block.
  void define(const std::string& name, const Location& location) {
    const Meaning meaning = names_.of(name);
    const char* kind = meaning == Meaning::weight      ? "weight"
                       : meaning == Meaning::module    ? "module"
                       : meaning == Meaning::parameter ? "parameter"
                                                       : nullptr;
    if (locals_.insert(name).second && kind != nullptr)
      warnings_.push_back(to_string(location) + ": '" + name + "' hides the " + kind + " of this name");
  }

  /// Refuses the name of a block or initialiser in quotes.
  void without_quotes(const Expression& expression) const {
    if (expression.form == Form::condition)
      for (const int chosen : {0, 2}) without_quotes(expression.children[chosen]);
    if (expression.form == Form::text && names_.of(expression.text) == Meaning::definition)
      throw OldForm(line_->location, "'" + expression.text + "'", expression.text);
  }

  void visit(const Expression& expression) {
    if (expression.form == Form::name) {
      if (locals_.count(expression.text) != 0) return;
      const Meaning meaning = names_.of(expression.text);
      if (meaning == Meaning::hyper) used_.insert(expression.text);
      if (meaning != Meaning::unknown) return;
      line_->fail(expression.column, names_.unknown(expression.text, {locals_.begin(), locals_.end()}));
    }
    if (expression.form == Form::comprehension) return comprehension(expression);
    const bool calls_attribute = expression.form == Form::call && expression.children[0].form == Form::attribute;
    if (calls_attribute) prefix(expression.children[0]);
    const bool calls_name = expression.form == Form::call && expression.children[0].form == Form::name;
    if (calls_name) callee(expression);
    for (std::size_t i = calls_name ? 1 : 0; i < expression.children.size(); ++i) visit(expression.children[i]);
    for (const Keyword& each : expression.keywords) visit(each.value);
  }

  void comprehension(const Expression& expression) {
    visit(expression.children[1]);
    Names fresh;
    for (const Target& target : expression.targets)
      if (locals_.count(target.name) == 0) fresh.insert(target.name);
    for (const Target& target : expression.targets) define(target.name, line_->location);
    for (const int inner : {2, 0}) visit(expression.children[inner]);
    for (const std::string& each : fresh) locals_.erase(each);
  }

  /// If the prefix is no module, as in `np.exp`, the error suggests what to call.
  void prefix(const Expression& callee) {
    const Expression* root = &callee.children[0];
    while (root->form == Form::attribute) root = &root->children[0];
    const Expression& object = *root;
    const bool op = names_.of_callee(callee.text) == Meaning::op;
    const std::string here = op ? "an op has no prefix: " + callee.text + "(…)" : or_synonym(callee.text, "");
    if (object.form != Form::name || here.empty()) return;
    if (locals_.count(object.text) == 0 && names_.of(object.text) == Meaning::unknown)
      line_->fail(object.column, "unknown name '" + object.text + "'; " + here);
  }

  void callee(const Expression& call) {
    const Expression& callee = call.children[0];
    const Meaning meaning = names_.of_callee(callee.text);
    if (meaning == Meaning::unknown && locals_.count(callee.text) == 0)
      line_->fail(callee.column, names_.unknown_callee(callee.text));
    if (meaning == Meaning::op && locals_.count(callee.text) == 0)
      if (const Op* op = names_.ops->find(callee.text)) attributes(*op, call);
  }

  void attributes(const Op& op, const Expression& call) {
    const auto check = [&](const Expression& value, const AttributeSpec& attribute) {
      if (value.form != Form::text) return;
      if (const std::string wrong = wrong_text(attribute, value.text); !wrong.empty()) line_->fail(value.column, wrong);
    };
    for (const Keyword& each : call.keywords) {
      if (const std::string wrong = wrong_keyword(op, each.name); !wrong.empty()) line_->fail(each.column, wrong);
      for (const AttributeSpec& attribute : op.attributes)
        if (attribute.name == each.name) check(each.value, attribute);
    }
    // The first text without a name goes to the first attribute that accepts texts.
    const auto text = std::find_if(call.children.begin() + 1, call.children.end(),
                                   [](const Expression& each) { return each.form == Form::text; });
    const auto attribute = std::ranges::find_if(op.attributes, takes_text);
    if (text != call.children.end() && attribute != op.attributes.end()) check(*text, *attribute);
  }

  VisibleNames names_;
  Names& used_;
  Warnings& warnings_;
  Names locals_;
  const Line* line_ = nullptr;
};

void check_module(Checker& checker, const ModuleSpec& module) {
  const Names index = {"index"};
  const Names& more = module.repeat ? index : Names{};
  for (const auto* line : {&module.repeat, &module.when})
    if (*line) checker.setting(**line);
  if (!module.given)
    checker.choice(
        module.block, "block", [&](const auto& name) { return module.home->find_block(name); }, more);
  for (const auto& [name, line] : module.settings) {
    // A plain name may refer to a supplied module. Building the modules checks it.
    line.value.form == Form::name ? checker.plain(line) : checker.setting(line, more);
  }
  for (const ModuleSpec& given : module.modules) check_module(checker, given);
}

void check_shared(Checker& checker, const Block& block) {
  for (std::size_t i = 0; i < block.parameters.size(); ++i)
    if (block.parameters[i].initial) checker.setting(*block.parameters[i].initial, {}, i);
  for (const WeightSpec& weight : block.weights) {
    for (const Line& line : weight.shape) checker.setting(line);
    if (!weight.value) checker.choice(weight.init, "initialiser", initialiser_settings);
    for (const auto& [name, line] : weight.settings) checker.setting(line);
    if (weight.when) checker.setting(*weight.when);
  }
  for (const ModuleSpec& module : block.modules) check_module(checker, module);
}

/// Checks the entry "defaults". A default may use the hyper-parameters of its file, and the parameters of blocks.
void check_defaults(const Definition& definition, const OpTable& ops, Names& used, Warnings& warnings) {
  Names parameters;
  for (const auto& block : definition.blocks)
    for (const Parameter& each : block->parameters) parameters.insert(each.name);
  Checker checker({.home = &definition, .recording = false, .ops = &ops}, used, warnings);
  for (const auto& each : definition.defaults) {
    checker.setting(each.second, parameters);
    add_hyper(each.second, definition, used);  // in modules outside blocks, the name of a parameter means this
  }
}

/// Checks that each hyper-parameter that the file declares, or sets for a file that it extends, has an effect.
void check_hyper(const Definition& definition, const Names& used) {
  if (!definition.node.has("hyper")) return;
  std::vector<std::string> others;
  for (const Parameter& each : definition.hyper)
    if (used.count(each.name) != 0) others.push_back(each.name);
  for (const auto& [name, entry] : definition.node.at("hyper").entries()) {
    if (used.count(name) != 0) continue;
    const std::string meant = did_you_mean(name, others);
    entry.fail_at_key("hyper-parameter '" + name + "' has no effect: no line mentions it" +
                      (meant.empty() && !others.empty() ? "; those with an effect are " + joined(others) : meant));
  }
}

/// Warns of blocks that hide those of used files. A file that extends another one means to replace them, and a change
/// hides nothing.
void find_hidden_blocks(const Definition& definition, Warnings& warnings) {
  if (!definition.extended.empty()) return;
  for (const auto& block : definition.blocks)
    for (const auto& [name, file] : definition.used) {
      const auto hidden = file->block_index.find(block->name);
      if (hidden != file->block_index.end() && !definition.changed.contains(hidden->second))
        warnings.push_back(to_string(block->location) + ": it hides the block of this name in " + name);
    }
}

Names check_file(const Definition& definition, const OpTable& ops, bool strict, Warnings& warnings,
                 std::set<const Definition*>& seen) {
  if (!seen.insert(&definition).second) return {};
  for (const auto& each : definition.used) check_file(*each.file, ops, strict, warnings, seen);
  find_hidden_blocks(definition, warnings);
  Names used(programs_read.begin(), programs_read.end());
  Checker hyper({&definition, nullptr, all_parameters, false, nullptr, &ops}, used, warnings);
  for (const Parameter& each : definition.hyper)
    if (each.initial) hyper.setting(*each.initial);
  if (definition.hugging_face) {
    for (const auto& setting : definition.hugging_face->settings) used.insert(setting.hyper);
    for (const auto& each : definition.hugging_face->fixed) used.insert(each.first);
    if (definition.hugging_face->adapter)
      for (const auto& setting : definition.hugging_face->adapter->hyper) used.insert(setting.second);
  }
  for (const auto& block : definition.blocks) {
    Checker checker({.home = &definition, .block = block.get(), .ops = &ops}, used, warnings);
    check_shared(checker, *block);
    for (const auto& each : block->exports) checker.expression(each.second);
    checker.computation(block->inputs, block->computation);
    for (const auto& each : block->updates) checker.expression(each.second);
  }
  check_defaults(definition, ops, used, warnings);
  if (definition.model != nullptr) {
    const VisibleNames names{
        .home = &definition, .block = definition.model.get(), .functions = &definition, .ops = &ops};
    Checker shared(names, used, warnings);
    check_shared(shared, *definition.model);
    for (const Function& function : definition.functions) {
      Checker checker(names, used, warnings);
      checker.computation(function.inputs, function.computation);
    }
  }
  if (strict || !definition.extended.empty()) check_hyper(definition, used);
  return used;
}
}  // namespace

Names check_names(const Definition& definition, const OpTable& ops, bool strict, Warnings* warnings) {
  std::set<const Definition*> seen;
  Warnings found;
  return check_file(definition, ops, strict, warnings != nullptr ? *warnings : found, seen);
}

}  // namespace xtape::model
