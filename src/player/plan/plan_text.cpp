#include <iomanip>
#include <sstream>

#include "player/plan/plan.hpp"
#include "xtape/player.hpp"

namespace xtape {

const char* name_of(BufferKind kind) {
  static const char* const names[] = {"arena", "output", "constant", "parameter", "input", "carry", "external"};
  return names[static_cast<int>(kind)];
}

std::string step_name(const Node& node) {
  if (!node.op->lowering.body.tiles) return node.op->name;
  std::string name;
  for (std::size_t i = 0; i < node.body->size(); ++i)
    if (const Op& op = *node.body->node(i).op; !op.is_source()) name += (name.empty() ? "" : "+") + op.name;
  return name;
}

std::string PlannedProgram::name_of(const Buffer& buffer) const {
  if (buffer.of.node < 0) return "the caller's memory";
  const Node& node = program->node(buffer.of.node);
  switch (buffer.role) {
    case Buffer::Role::copy:
      return "copy of " + program->label(buffer.of);
    case Buffer::Role::output:
      return "output of " + program->label(buffer.of);
    case Buffer::Role::scratch:
      return "scratch of " + step_name(node);
    default:
      return node.name.empty() ? program->label(buffer.of) : node.name;
  }
}

std::string PlannedProgram::name_of(const PlannedStep& step) const {
  return step.is_copy() ? "copy" : step_name(program->node(step.node));
}

std::string PlannedProgram::types_text(const PlannedStep& step) const {
  std::string text;
  for (const ValueType& type : types_of(step)) text += (text.empty() ? "" : ", ") + to_string(type);
  return text;
}

std::ostream& operator<<(std::ostream& out, const Plan& plan) {
  const auto mib = [](std::size_t bytes) {
    std::ostringstream text;
    text << std::fixed << std::setprecision(2) << static_cast<double>(bytes) / (1 << 20) << " MiB";
    return text.str();
  };
  out << plan.steps.size() << " steps; peak " << mib(plan.peak_bytes()) << ": arena " << mib(plan.arena_bytes)
      << " (including scratch " << mib(plan.scratch_bytes) << "), outputs " << mib(plan.output_bytes)
      << (plan.sum_bytes > 0 ? ", partial sums " + mib(plan.sum_bytes) : "") << ", constants and inputs "
      << mib(plan.constant_bytes) << ", parameters " << mib(plan.parameter_bytes) << "\n";
  for (std::size_t i = 0; i < plan.steps.size(); ++i)
    out << "step " << i << ": " << plan.steps[i].op << " -> " << plan.steps[i].outputs
        << (plan.steps[i].site.empty() ? "" : "  at " + plan.steps[i].site) << "\n";
  for (const Plan::Fusion& fusion : plan.fusions)
    out << (fusion.miss.empty() ? "rule " : "no rule ") << fusion.rule << " at " << fusion.place
        << (fusion.site.empty() ? "" : ", " + fusion.site) << (fusion.miss.empty() ? "" : ": " + fusion.miss) << "\n";
  for (const Plan::Buffer& buffer : plan.buffers)
    out << buffer.kind << " " << buffer.name << ": " << buffer.bytes << " bytes at " << buffer.offset << ", steps "
        << buffer.first << " to " << buffer.last << "\n";
  return out;
}

}  // namespace xtape
