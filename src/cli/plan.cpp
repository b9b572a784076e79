/// xtape plan: the memory and the predicted time of the plans of a play, and what lives when.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <sstream>

#include "gnuplot.hpp"
#include "memory.hpp"
#include "play_of.hpp"

namespace xtape::cli {
namespace {

struct PlanArguments {
  PlayArguments play;
  std::string memory, out;
};

double mebibytes(std::size_t bytes) {
  return static_cast<double>(bytes) / (1 << 20);
}

/// At most `most` points of a curve, the first and the last included.
std::vector<MemoryPoint> thinned(const std::vector<MemoryPoint>& curve, std::size_t most) {
  std::vector<MemoryPoint> few;
  const std::size_t count = std::min(most, curve.size());
  for (std::size_t i = 0; i < count; ++i) few.push_back(curve[count == 1 ? 0 : i * (curve.size() - 1) / (count - 1)]);
  return few;
}

void print_curve(const std::vector<MemoryPoint>& curve) {
  constexpr std::size_t most = 16;
  std::printf("    memory     arena      time   steps that run again\n");
  for (const MemoryPoint& point : thinned(curve, most))
    std::printf("%6.1f MiB %6.1f MiB  +%5.1f %%   %lld\n", mebibytes(point.bytes), mebibytes(point.arena_bytes),
                100 * (point.seconds / curve.front().seconds - 1), static_cast<long long>(point.again));
}

void print_plan(const Plan& plan) {
  const auto again = std::count_if(plan.steps.begin(), plan.steps.end(), [](const auto& step) { return step.again; });
  std::printf("%zu steps, %lld of them again; %s: %s parameters, %s outputs, %s constants and inputs, %s arena\n",
              plan.steps.size(), static_cast<long long>(again), bytes_text(plan.peak_bytes()).c_str(),
              bytes_text(plan.parameter_bytes).c_str(), bytes_text(plan.output_bytes).c_str(),
              bytes_text(plan.constant_bytes).c_str(), bytes_text(plan.arena_bytes).c_str());
}

/// Draws each buffer of the arena as a rectangle: from the first to the last step that uses it, at its offset.
void draw(const Plan& plan, const std::string& path) {
  std::ostringstream data, script;
  for (const Plan::Buffer& buffer : plan.buffers) {
    if (buffer.kind != "arena" || buffer.first < 0 || buffer.bytes == 0) continue;
    const double low = mebibytes(buffer.offset), high = mebibytes(buffer.offset + buffer.bytes);
    data << buffer.first + 0.5 << ' ' << (low + high) / 2 << ' ' << buffer.first << ' ' << buffer.last + 1 << ' '
         << gnuplot_number(low) << ' ' << gnuplot_number(high) << ' ' << buffer.last - buffer.first << '\n';
  }
  script
      << "$buffers << END\n"
      << data.str() << "END\nset xlabel 'step'\nset ylabel 'MiB of the arena'\nset xrange [0:" << plan.steps.size()
      << "]\nset yrange [0:*]\nset cblabel 'steps that it lives'\n"
      << "set palette defined (0 '#f7cfa6', 1 '#c85a00', 2 '#1f5fa8')\nset style fill solid 0.85 border rgb 'white'\n"
      << "plot $buffers using 1:2:3:4:5:6:7 with boxxyerror linecolor palette notitle\n";
  draw_svg(script.str(), 1000, 560, path);
}

void run(const PlanArguments& arguments) {
  RecordedPlay play = play_of(arguments.play, false);
  if (!arguments.memory.empty()) {
    const std::optional<std::size_t> bytes = bytes_in(arguments.memory);
    if (!bytes) throw WrongInput("--memory must be a size such as 300MiB; the units are " + std::string(byte_units));
    play.options.memory = *bytes;
  }
  const Player player = as_wrong_input([&] { return Player(play.tape, play.outputs, play.options); });
  print_curve(memory_curve(play.tape, play.outputs, play.options));
  print_plan(player.plan());
  if (!arguments.out.empty()) draw(player.plan(), arguments.out);
}

}  // namespace

void add_plan(CLI::App& program) {
  CLI::App* command = program.add_subcommand("plan", "Show the memory and predicted time of a play, without playing");
  const auto arguments = std::make_shared<PlanArguments>();
  add_play(*command, arguments->play, false);
  command->add_option("--memory", arguments->memory, "Show the plan that takes at most this, such as 300MiB")
      ->type_name("SIZE");
  command->add_option("--out", arguments->out, "Draw which buffer lives when to this file")->type_name("FILE.svg");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace xtape::cli
