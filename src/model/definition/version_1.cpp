#include "model/definition/version_1.hpp"

namespace xtape::model {

namespace {
void upgrade(Expression& expression) {
  const bool is_scan = is_call_of("scan", expression);
  for (Expression& child : expression.children) upgrade(child);
  for (Keyword& each : expression.keywords) {
    upgrade(each.value);
    if (is_scan && each.name == "alike") each.name = "non_sequences";
    if (is_scan && each.name == "real") each.name = "valid";
  }
}
}  // namespace

void upgrade(Computation& computation) {
  for (Line& line : computation.lines) upgrade(line.value);
  for (auto& result : computation.results) upgrade(result.second.value);
}

}  // namespace xtape::model
