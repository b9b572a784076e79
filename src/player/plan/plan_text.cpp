#include <iomanip>
#include <sstream>

#include "xtape/player.hpp"

namespace xtape {

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
