// Rules applied to the step of a scan.
#include "fusions.hpp"
#include "scan.hpp"

namespace xtape {

Tape with_fused_calls(const Tape& body) {
  const Fusions fusions(body.ops(), {body, std::vector<bool>(body.size(), true), body.results()});
  if (fusions.found().empty()) return body;
  Tape next = body.blank();
  std::vector<Vars> now(body.size());
  const auto var_of = [&](ValueId id) {
    return now[static_cast<std::size_t>(id.node)][static_cast<std::size_t>(id.output)];
  };
  for (std::size_t i = 0; i < body.size(); ++i) {
    Node node = body.node(i);
    for (ValueId& input : node.inputs) input = var_of(input).id();
    const std::size_t count = node.outputs.size();
    const Site site = node.site;
    const std::int32_t placed = next.append(std::move(node)).node;  // in vain where nothing reads it any more
    for (std::size_t k = 0; k < count; ++k) now[i].push_back(next.var({placed, static_cast<std::int32_t>(k)}));
    const Fusion* fusion = fusions.at(static_cast<std::int32_t>(i));
    if (fusion == nullptr || fusion->rule->gradients_beforehand) continue;
    const auto in_site = next.in_site(site);
    const auto in_fused_call = next.in_fused_call();
    const Vars fused = record_fusion(*fusion, next, var_of);
    for (const auto& [of_root, of_call] : fusion->outputs)
      now[i][static_cast<std::size_t>(of_root)] = fused[static_cast<std::size_t>(of_call)];
  }
  std::vector<ValueId> results;
  for (const ValueId& id : body.results()) results.push_back(var_of(id).id());
  next.set_results(results);
  return next;
}

}  // namespace xtape
