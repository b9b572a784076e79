/// xtape plan: shows the memory and the predicted time of the plans of a play, and the lifetimes of buffers.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <sstream>
#include <utility>
#include <vector>

#include "cli/pictures.hpp"
#include "cli/play_of.hpp"
#include "player/plan/memory.hpp"

namespace xtape::cli {
namespace {

struct PlanArguments {
  PlayArguments play;
  std::string memory, out;
};

double mebibytes(std::size_t bytes) {
  return static_cast<double>(bytes) / (1 << 20);
}

/// Prints at most 16 points of the curve, including the first and the last point.
void print_curve(const std::vector<MemoryPoint>& curve) {
  const std::size_t count = std::min<std::size_t>(16, curve.size());
  std::printf("    memory     arena      time   steps that run again\n");
  for (std::size_t i = 0; i < count; ++i) {
    const MemoryPoint& point = curve[count == 1 ? 0 : i * (curve.size() - 1) / (count - 1)];
    std::printf("%6.1f MiB %6.1f MiB  +%5.1f %%   %lld\n", mebibytes(point.bytes), mebibytes(point.arena_bytes),
                100 * (point.seconds / curve.front().seconds - 1), static_cast<long long>(point.again));
  }
}

std::int64_t steps_again(const Plan& plan) {
  return std::ranges::count_if(plan.steps, [](const auto& step) { return step.again; });
}

void print_plan(const Plan& plan) {
  std::printf("%zu steps, %lld of them again; %s: %s parameters, %s outputs, %s constants and inputs, %s arena\n",
              plan.steps.size(), static_cast<long long>(steps_again(plan)), bytes_text(plan.peak_bytes()).c_str(),
              bytes_text(plan.parameter_bytes).c_str(), bytes_text(plan.output_bytes).c_str(),
              bytes_text(plan.constant_bytes).c_str(), bytes_text(plan.arena_bytes).c_str());
}

/// Returns the first step that computes a gradient, or -1 if there is none. The first outputs of a play are the loss
/// and its count, which have one element each. All nodes recorded after them belong to gradients.
int first_backward(const RecordedPlay& play, const Plan& plan) {
  std::int32_t loss = -1;
  for (const Var& output : play.outputs) {
    if (count_of(output.type().shape) != 1) break;
    loss = std::max(loss, output.id().node);
  }
  if (loss < 0) return -1;
  int first = -1;
  for (const Plan::Buffer& buffer : plan.buffers) {
    const bool is_value = buffer.name.starts_with('#') && buffer.first >= 0;  // for example "#12 add"
    if (is_value && std::atoi(buffer.name.c_str() + 1) > loss && (first < 0 || buffer.first < first))
      first = buffer.first;
  }
  return first;
}

bool is_drawn(const Plan::Buffer& buffer) {
  return buffer.kind == "arena" && buffer.first >= 0 && buffer.bytes > 0;
}

/// Returns the largest buffers of the arena, ordered by size and then by lifetime.
std::vector<Plan::Buffer> largest_buffers(const Plan& plan, std::size_t most) {
  std::vector<Plan::Buffer> largest;
  std::copy_if(plan.buffers.begin(), plan.buffers.end(), std::back_inserter(largest), is_drawn);
  std::ranges::stable_sort(largest, [](const Plan::Buffer& a, const Plan::Buffer& b) {
    return std::pair(a.bytes, a.last - a.first) > std::pair(b.bytes, b.last - b.first);
  });
  if (largest.size() > most) largest.resize(most);
  return largest;
}

/// Shades the steps that recompute results. Consecutive steps form one rectangle.
void shade_again(const Plan& plan, std::ostream& script) {
  for (std::size_t step = 0; step < plan.steps.size(); ++step) {
    if (!plan.steps[step].again) continue;
    const std::size_t first = step;
    while (step + 1 < plan.steps.size() && plan.steps[step + 1].again) ++step;
    script << "set object rectangle from " << first << ", graph 0 to " << step + 1
           << ", graph 1 behind fillcolor rgb '#d8d8d8' fillstyle solid noborder\n";
  }
}

/// Draws each buffer of the arena as a rectangle at its offset, from the first to the last step that uses it. Numbers
/// the largest buffers and names them below the picture, shades the steps that recompute results, and marks where the
/// backward part begins.
void draw(const RecordedPlay& play, const Plan& plan, const std::string& path) {
  constexpr std::size_t most_named = 8;
  constexpr double height = 700, line = 19;  // pixels
  std::ostringstream data, script;
  int longest = 1;
  for (const Plan::Buffer& buffer : plan.buffers) {
    if (!is_drawn(buffer)) continue;
    const double low = mebibytes(buffer.offset), high = mebibytes(buffer.offset + buffer.bytes);
    data << buffer.first + 0.5 << ' ' << (low + high) / 2 << ' ' << buffer.first << ' ' << buffer.last + 1 << ' '
         << gnuplot_number(low) << ' ' << gnuplot_number(high) << ' ' << buffer.last - buffer.first << '\n';
    longest = std::max(longest, buffer.last - buffer.first);
  }
  script << "$buffers << END\n"
         << data.str() << "END\nset xlabel 'step'\nset ylabel 'MiB of the arena'\nset xrange [0:" << plan.steps.size()
         << "]\nset yrange [0:*]\nset cblabel 'steps that it lives' offset 1,0\nset cbrange [0:" << longest
         << "]\nset cbtics format '%g'\nset palette defined (0 '#f7cfa6', 1 '#c85a00', 2 '#1f5fa8')\n"
         << "set style fill solid 0.85 border rgb 'white'\n";
  const std::vector<Plan::Buffer> named = largest_buffers(plan, most_named);
  const std::int64_t again = steps_again(plan);
  const std::size_t lines = (named.size() + 1) / 2 + 1;
  const auto at_line = [&](std::size_t number) {
    return gnuplot_number((static_cast<double>(lines - number) * line - line / 2) / height);
  };
  script << "set tmargin 2\nset bmargin at screen " << gnuplot_number((static_cast<double>(lines) * line + 55) / height)
         << "\nset label "
         << gnuplot_string(again == 0   ? "No step runs again."
                           : again == 1 ? "1 step runs again, shaded in grey."
                                        : std::to_string(again) + " steps run again, shaded in grey.")
         << " at screen 0.08," << at_line(0) << '\n';
  for (std::size_t i = 0; i < named.size(); ++i) {
    const Plan::Buffer& buffer = named[i];
    const std::string number = std::to_string(i + 1);
    const std::string& module = plan.steps[buffer.first].module;
    script << "set label '" << number << "' at " << (buffer.first + buffer.last + 1) / 2.0 << ","
           << mebibytes(buffer.offset) + mebibytes(buffer.bytes) / 2 << " center front textcolor rgb 'black'\n"
           << "set label "
           << gnuplot_string(number + ": " + buffer.name + (module.empty() ? "" : " at " + module) + ", " +
                             bytes_text(buffer.bytes) + ", steps " + std::to_string(buffer.first) + " to " +
                             std::to_string(buffer.last))
           << " at screen " << (i % 2 == 0 ? "0.08" : "0.54") << "," << at_line(1 + i / 2) << " font ',11'\n";
  }
  shade_again(plan, script);
  if (const int first = first_backward(play, plan); first >= 0)
    script << "set arrow from " << first << ", graph 0 to " << first
           << ", graph 1 nohead front dashtype 2 linewidth 2 linecolor rgb 'black'\nset label 'backward part' at "
           << first << ", graph 1 offset 0,0.6 left front\n";
  script << "plot $buffers using 1:2:3:4:5:6:7 with boxxyerror linecolor palette notitle\n";
  draw_svg(script.str(), 1000, static_cast<int>(height), path);
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
  if (!arguments.out.empty()) draw(play, player.plan(), arguments.out);
}

}  // namespace

void add_plan(CLI::App& program) {
  const auto [command, arguments] =
      add_command<PlanArguments>(program, "plan", "Show the memory and predicted time of a play, without playing", run);
  add_play(command, arguments.play, false);
  add_option(command, "--memory", arguments.memory, "Show the plan that takes at most this, such as 300MiB")
      ->type_name("SIZE");
  add_option(command, "--out", arguments.out, "Draw which buffer lives when to this file")->type_name("FILE.svg");
}

}  // namespace xtape::cli
