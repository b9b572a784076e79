/// xtape attention: draws the attention weights of a run's model.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "base/messages/wording.hpp"
#include "base/system/durable.hpp"
#include "cli/pictures.hpp"
#include "cli/run_options.hpp"
#include "xtape/train.hpp"

namespace xtape::cli {
namespace {

struct AttentionArguments {
  std::string run;
  std::string checkpoint = "last";
  std::string source;
  std::optional<std::string> target;
  std::string out;
  std::string which;
  std::int64_t layer = 0;  // 0 stands for the last layer
  std::string head = "mean";
};

/// Returns the attention named `which`. If `which` is empty, returns the first attention. This is the decoder's
/// attention to the source if the model has a decoder that reads a source.
const Attention& chosen(const std::vector<Attention>& all, const std::string& which) {
  if (which.empty()) return all.front();
  std::vector<std::string> names;
  for (const Attention& each : all) {
    if (each.name == which) return each;
    names.push_back(each.name);
  }
  throw WrongInput("there is no attention '" + which + "'" + did_you_mean(which, names) + "; this model has " +
                   joined(names));
}

/// Returns `number` if it is in 1 to `count`. Otherwise throws WrongInput.
std::int64_t counted(const std::string& option, std::int64_t number, std::int64_t count, const std::string& what) {
  if (number >= 1 && number <= count) return number;
  throw WrongInput(option + " must be 1 to " + std::to_string(count) + ", because this attention has " +
                   std::to_string(count) + " " + what + "; got " + std::to_string(number));
}

std::vector<double> weights_of(const Attention& attention, std::int64_t layer, std::int64_t head) {
  const Shape& shape = attention.weights.shape();
  const std::int64_t count = shape[2] * shape[3];
  const float* first = attention.weights.as<float>() + (layer * shape[1] + head) * count;
  return {first, first + count};
}

std::vector<double> mean_of(const Attention& attention, std::int64_t layer) {
  const std::int64_t heads = attention.weights.shape()[1];
  std::vector<double> mean = weights_of(attention, layer, 0);
  for (std::int64_t head = 1; head < heads; ++head) {
    const std::vector<double> more = weights_of(attention, layer, head);
    std::transform(mean.begin(), mean.end(), more.begin(), mean.begin(), std::plus<>());
  }
  for (double& weight : mean) weight /= static_cast<double>(heads);
  return mean;
}

svg::HeatMaps maps_of(const Attention& attention, const AttentionArguments& arguments) {
  const std::int64_t layers = attention.weights.shape()[0];
  const std::int64_t heads = attention.weights.shape()[1];
  const std::int64_t layer = arguments.layer == 0 ? layers : counted("--layer", arguments.layer, layers, "layers");
  svg::HeatMaps maps;
  maps.title = attention.name + " attention";
  if (layers > 1) maps.title += ", layer " + std::to_string(layer) + " of " + std::to_string(layers);
  maps.row_name = attention.queries.text;
  maps.column_name = attention.keys.text;
  maps.rows = attention.queries.tokens;
  maps.columns = attention.keys.tokens;
  if (arguments.head == "all") {
    for (std::int64_t head = 0; head < heads; ++head)
      maps.maps.push_back({"head " + std::to_string(head + 1), weights_of(attention, layer - 1, head)});
  } else if (arguments.head == "mean") {
    if (heads > 1) maps.title += ", mean of " + std::to_string(heads) + " heads";
    maps.maps.push_back({"", mean_of(attention, layer - 1)});
  } else {
    const std::int64_t head = counted("--head", std::stoll(arguments.head), heads, "heads");
    maps.title += ", head " + std::to_string(head) + " of " + std::to_string(heads);
    maps.maps.push_back({"", weights_of(attention, layer - 1, head - 1)});
  }
  return maps;
}

void draw_attention(const AttentionArguments& arguments) {
  Run run = open_run(arguments.run, arguments.checkpoint);
  const std::vector<Attention> all = as_wrong_input([&] { return run.attention(arguments.source, arguments.target); });
  const svg::HeatMaps maps = maps_of(chosen(all, arguments.which), arguments);
  write_file(picture_path(arguments.out, "attention.svg"), drawn(maps));
}

}  // namespace

void add_attention(CLI::App& program) {
  const auto [command, arguments] = add_command<AttentionArguments>(
      program, "attention", "Draw the attention weights of a run's model as heat maps", draw_attention);
  add_option(command, "RUN", arguments.run, "A run directory", required);
  add_checkpoint(command, arguments.checkpoint);
  add_option(command, "--source", arguments.source, "The source sentence; for a run that generates text, the text",
             required | may_be_empty);
  add_option(command, "--target", arguments.target,
             "The target sentence (default: the run's translation, with the search of its recipe)", may_be_empty);
  add_picture(command, arguments.out, "attention.svg");
  add_option(command, "--which", arguments.which,
             "The attention to draw: cross (of the target to the source), encoder, decoder, or another result of the "
             "model's function `attention` (default: the first)");
  add_option(command, "--layer", arguments.layer, "The layer, counted from 1 (default: the last)", positive);
  add_option(command, "--head", arguments.head, "mean: over all heads; all: one map per head; N: one, counted from 1",
             shown)
      ->check([](const std::string& head) {
        const bool number = head.size() < 10 && head.find_first_not_of("0123456789") == std::string::npos;
        return number || head == "mean" || head == "all" ? "" : "must be mean, all or a number, not '" + head + "'";
      });
}

}  // namespace xtape::cli
