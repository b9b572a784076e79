/// xtape shadow: plays beside itself in float64, and ranks the calls by the error that they add.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <memory>
#include <sstream>

#include "gnuplot.hpp"
#include "play_of.hpp"
#include "run_options.hpp"
#include "xtape/player.hpp"

namespace xtape::cli {
namespace {

struct ShadowArguments {
  PlayArguments play;
  std::string weights;  ///< A dtype; empty: as they are.
  std::size_t top = 15;
  std::string out;
};

std::string place(const NodeError& error) {
  return error.node + " -> " + error.type + (error.site.empty() ? "" : "  at " + error.site);
}

void print(const NodeError& error) {
  std::printf("%9.2e %9.2e %9.2e %9.2e  %s\n", error.added(), error.made, error.inherited, error.total,
              place(error).c_str());
}

/// Whether the value is a result whose exact value is 0, such as the gradient of a key's bias: all of it is rounding.
bool is_zero_but_for_rounding(const NodeError& error) {
  constexpr double all = 0.5, rounding = 1e-10;
  return error.output >= 0 && error.total > all && error.rms <= rounding * error.operand_rms;
}

/// Prints the values whose `count` is not 0.
void print_counts(const char* title, const std::vector<NodeError>& errors, std::int64_t NodeError::*count) {
  bool first = true;
  for (const NodeError& error : errors) {
    if (error.*count == 0) continue;
    if (first) std::printf("%s\n", title);
    first = false;
    std::printf("  %lld of %lld in %s\n", static_cast<long long>(error.*count), static_cast<long long>(error.elements),
                place(error).c_str());
  }
}

void print_table(const std::vector<NodeError>& errors, std::size_t top) {
  std::vector<NodeError> judged;
  for (const NodeError& error : errors)
    if (!is_zero_but_for_rounding(error)) judged.push_back(error);
  double worst = 0, of_output = 0;
  for (const NodeError& error : judged) {
    if (std::isfinite(error.total)) worst = std::max(worst, error.total);
    if (error.output == 0) of_output = error.total;
  }
  const std::vector<NodeError> list = ranked(judged);
  std::printf("%zu values; the largest relative error is %.2e, that of the first output %.2e\n", errors.size(), worst,
              of_output);
  std::printf("    added      made inherited     total\n");
  for (std::size_t i = 0; i < std::min(top, list.size()); ++i) print(list[i]);
  if (judged.size() < errors.size()) std::printf("results that are 0 but for rounding:\n");
  for (const NodeError& error : errors)
    if (is_zero_but_for_rounding(error)) std::printf("  %s\n", place(error).c_str());
  print_counts("elements that are finite in only one of both plays:", errors, &NodeError::overflows);
  print_counts("choices that differ in float64:", errors, &NodeError::flipped);
}

/// Draws the error of every value in the order of playing, and what its node adds.
void draw(const std::vector<NodeError>& errors, const std::string& path) {
  std::ostringstream data, script;
  for (std::size_t i = 0; i < errors.size(); ++i)
    if (errors[i].total > 0 && std::isfinite(errors[i].total))
      data << i << ' ' << gnuplot_number(errors[i].total) << ' '
           << (errors[i].added() > 0 ? gnuplot_number(errors[i].added()) : "NaN") << '\n';
  script << "$errors << END\n"
         << data.str() << "END\nset logscale y\nset format y '%g'\nset xlabel 'value, in the order "
         << "of playing'\nset ylabel 'relative error'\nset key top left\nset grid linecolor rgb '#e4e4e4' linetype 1\n"
         << "plot $errors using 1:3 with impulses linecolor rgb '#f7cfa6' title 'added by the node', "
         << "$errors using 1:2 with points pointtype 7 pointsize 0.3 linecolor rgb '#1f5fa8' title 'of the value'\n";
  draw_svg(script.str(), 1000, 480, path);
}

/// The shadow of a run's loss with its weights stored as `dtype`.
std::vector<NodeError> shadow_of_weights(const ShadowArguments& arguments) {
  return as_wrong_input([&] {
    if (kind_of(arguments.play.what) != Kind::run)
      throw WrongInput("--weights needs a run: the rounding of initial weights says nothing");
    Run run = Run::open(arguments.play.what, parse_settings(arguments.play.set));
    RecordedPlay play = run.trainer().next_play();
    set_options(arguments.play, play);
    play.outputs.resize(1);  // the loss: gradients are not taken through such weights
    run.model().store_weights_as(dtype_named(arguments.weights));
    Tape tape;
    Store rounded;
    for (const auto& [name, weight] : run.model().weights(tape))
      if (run.model().weights().at(name).dtype() != weight.dtype()) rounded.add(name, evaluate(weight));
    return shadow(play, rounded);
  });
}

void run(const ShadowArguments& arguments) {
  const std::vector<NodeError> errors =
      arguments.weights.empty() ? shadow(play_of(arguments.play)) : shadow_of_weights(arguments);
  print_table(errors, arguments.top);
  if (!arguments.out.empty()) draw(errors, arguments.out);
}

}  // namespace

void add_shadow(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("shadow", "Compare a play with float64, and rank the calls by the error that they add");
  const auto arguments = std::make_shared<ShadowArguments>();
  add_play(*command, arguments->play);
  command
      ->add_option("--weights", arguments->weights,
                   "Of a run: store the weights of products as this dtype, and judge the loss")
      ->check(CLI::IsMember({"bfloat16", "int8"}));
  command->add_option("--top", arguments->top, "The number of calls to print")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_option("--out", arguments->out, "Draw the errors of all values to this file")->type_name("FILE.svg");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace xtape::cli
