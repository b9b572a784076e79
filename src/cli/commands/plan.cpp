/// xtape plan: shows the memory and the predicted time of the plans of a play, and the lifetimes of buffers.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "base/system/durable.hpp"
#include "cli/paths.hpp"
#include "cli/pictures.hpp"
#include "cli/play_of.hpp"
#include "inspect/node_by_node.hpp"
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

/// Returns the first step that computes a gradient, or -1 if there is none.
int first_backward(const RecordedPlay& play, const Plan& plan) {
  const std::int32_t loss = loss_node_of(play);
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

/// Returns the strips of the steps that recompute results. Consecutive steps form one strip.
std::vector<svg::Point> strips_again(const Plan& plan) {
  std::vector<svg::Point> strips;
  for (std::size_t step = 0; step < plan.steps.size(); ++step) {
    if (!plan.steps[step].again) continue;
    const auto at = static_cast<double>(step);
    if (!strips.empty() && strips.back().y == at)
      strips.back().y = at + 1;
    else
      strips.push_back({at, at + 1});
  }
  return strips;
}

/// Returns what is known about a buffer, in words.
std::string about(const Plan& plan, const Plan::Buffer& buffer) {
  const std::string& module = plan.steps[buffer.first].module;
  return buffer.name + (module.empty() ? "" : " at " + module) + ", " + bytes_text(buffer.bytes) + ", steps " +
         std::to_string(buffer.first) + " to " + std::to_string(buffer.last);
}

void run(const PlanArguments& arguments) {
  check_out(arguments.out, {arguments.play.what});
  RecordedPlay play = play_of(arguments.play, false);
  if (!arguments.memory.empty()) {
    const std::optional<std::size_t> bytes = bytes_in(arguments.memory);
    if (!bytes) throw WrongInput("--memory must be a size such as 300MiB; the units are " + std::string(byte_units));
    play.options.memory = *bytes;
  }
  const Player player(play.tape, play.outputs, play.options);
  print_curve(memory_curve(play.tape, play.outputs, play.options));
  print_plan(player.plan());
  if (!arguments.out.empty()) write_file(arguments.out, drawn(chart_of_plan(play, player.plan())));
}

}  // namespace

svg::Chart chart_of_plan(const RecordedPlay& play, const Plan& plan) {
  constexpr std::size_t most_named = 8;
  constexpr std::size_t forward = 5, kept = 0, backward = 1;  // colours
  svg::Chart chart;
  chart.title = "Memory of the plan: what lives when";
  chart.x = {.title = "step", .low = 0, .high = static_cast<double>(plan.steps.size())};
  chart.y = {.title = "MiB of the arena", .low = 0};
  chart.width = 820, chart.height = 460;
  const int first = first_backward(play, plan);
  if (first >= 0) {
    chart.rules.push_back({{static_cast<double>(first), 0}, "backward part"});
    chart.box_names = {{forward, "forward"}, {kept, "kept for the backward part"}, {backward, "backward"}};
  }
  const std::vector<Plan::Buffer> named = largest_buffers(plan, most_named);
  for (const Plan::Buffer& buffer : plan.buffers) {
    if (!is_drawn(buffer)) continue;
    const auto same = [&](const Plan::Buffer& other) { return about(plan, other) == about(plan, buffer); };
    const auto number = std::ranges::find_if(named, same) - named.begin();
    chart.boxes.push_back({.left = static_cast<double>(buffer.first),
                           .right = static_cast<double>(buffer.last + 1),
                           .low = mebibytes(buffer.offset),
                           .high = mebibytes(buffer.offset + buffer.bytes),
                           .colour = first < 0              ? kept
                                     : buffer.last < first  ? forward
                                     : buffer.first < first ? kept
                                                            : backward,
                           .about = about(plan, buffer),
                           .label = number < std::ssize(named) ? std::to_string(number + 1) : ""});
  }
  chart.bands = strips_again(plan);
  for (std::size_t i = 0; i < named.size(); ++i)
    chart.notes.push_back(std::to_string(i + 1) + ": " + about(plan, named[i]));
  const std::int64_t again = steps_again(plan);
  chart.notes.push_back(again == 0   ? "No step runs again."
                        : again == 1 ? "1 step runs again, shaded in grey."
                                     : std::to_string(again) + " steps run again, shaded in grey.");
  return chart;
}

void add_plan(CLI::App& program) {
  const auto [command, arguments] =
      add_command<PlanArguments>(program, "plan", "Show the memory and predicted time of a play, without playing", run);
  add_play(command, arguments.play, false);
  add_option(command, "--memory", arguments.memory, "Show the plan that takes at most this, such as 300MiB")
      ->type_name("SIZE");
  add_picture(command, arguments.out, "", "Draw which buffer lives when to this file");
}

}  // namespace xtape::cli
