#include "usage.hpp"

#include <functional>
#include <set>

namespace xtape::model {

namespace {
/// Every expression of a computation, at every depth.
void each_expression(const Computation& computation, const std::function<void(const Expression&)>& visit) {
  const std::function<void(const Expression&)> walk = [&](const Expression& expression) {
    visit(expression);
    for (const Expression& child : expression.children) walk(child);
    for (const Keyword& keyword : expression.keywords) walk(keyword.value);
  };
  for (const Line& line : computation.lines) walk(line.value);
  for (const auto& result : computation.results) walk(result.second.value);
}

class Usage {
 public:
  void note(const Part& part, const Computation& computation) {
    each_expression(computation, [&](const Expression& expression) {
      if (expression.form == Form::name) add(part, expression.text);
      if (expression.form == Form::attribute)
        for (const Part* owner : owners(part, expression.children[0])) add(*owner, expression.text);
    });
  }

  void walk(const Part& part) {
    if (!part.block->computation.results.empty()) note(part, part.block->computation);
    for (const PartList& list : part.parts)
      for (const auto& item : list.items) walk(*item);
  }

  void check(const Part& part) const {
    for (const Weight& weight : part.weights)
      if (!weight.path.empty() && weights_.count(&weight) == 0)
        fail(weight.spec->place, "weight '" + weight.path + "' is never used: no line mentions it");
    for (std::size_t i = 0; i < part.parts.size(); ++i) {
      const PartSpec& declared = part.block->parts[i];
      if (lists_.count(&part.parts[i]) == 0)
        fail(declared.place, "part '" + declared.name + "' is never used: no line mentions it");
      for (const auto& item : part.parts[i].items) check(*item);
    }
  }

 private:
  void add(const Part& part, const std::string& name) {
    if (const Weight* weight = part.find_weight(name)) weights_.insert(weight);
    if (const PartList* list = part.find_part(name)) lists_.insert(list);
  }

  /// The parts that an expression such as `h[0].attn` names, seen from `part`; an index may choose any repeat.
  static std::vector<const Part*> owners(const Part& part, const Expression& expression) {
    std::vector<const Part*> found;
    const auto collect = [&](const Part& owner, const std::string& name) {
      if (const PartList* list = owner.find_part(name))
        for (const auto& item : list->items) found.push_back(item.get());
    };
    if (expression.form == Form::name) collect(part, expression.text);
    if (expression.form == Form::index) return owners(part, expression.children[0]);
    if (expression.form == Form::condition) {
      found = owners(part, expression.children[0]);
      for (const Part* owner : owners(part, expression.children[2])) found.push_back(owner);
    }
    if (expression.form == Form::attribute && expression.text == "all") return owners(part, expression.children[0]);
    if (expression.form == Form::attribute)
      for (const Part* owner : owners(part, expression.children[0])) collect(*owner, expression.text);
    return found;
  }

  std::set<const Weight*> weights_;
  std::set<const PartList*> lists_;
};
}  // namespace

void check_usage(const Part& root, const Definition& definition) {
  Usage usage;
  usage.walk(root);
  for (const Function& function : definition.functions) usage.note(root, function.computation);
  usage.check(root);
}

}  // namespace xtape::model
