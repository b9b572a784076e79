/// xtape generate: continues texts with the model of a run or of a folder.
#include <chrono>
#include <iostream>
#include <memory>
#include <optional>

#include "base/messages/wording.hpp"
#include "cli/commands.hpp"
#include "cli/lines.hpp"
#include "cli/opened_model.hpp"
#include "cli/run_options.hpp"
#include "xtape/decode.hpp"
#include "xtape/text.hpp"

namespace xtape::cli {
namespace {

using Clock = std::chrono::steady_clock;
const Clock::time_point program_start = Clock::now();
double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

struct GenerateArguments {
  std::string source;
  std::string checkpoint = "last";
  std::vector<std::string> prompts;
  std::string prompts_file;
  ReadOptions reading;
  std::vector<std::string> stops;
  bool timings = false;
  InferenceArguments inference;
  std::optional<double> temperature, top_p;
  std::optional<std::int64_t> top_k;
  GenerateOptions options;
};

/// The times for --timings.
struct Timings {
  double opened = 0;       // milliseconds since the program's start
  double first_token = 0;  // milliseconds since the program's start
  std::int64_t tokens = 0;

  void count() {
    if (tokens++ == 0) first_token = milliseconds_since(program_start);
  }
  void print() const {
    std::cerr.precision(4);
    std::cerr << "model opened after " << opened << " ms, first token after " << first_token << " ms";
    if (tokens > 1)
      std::cerr << ", " << tokens - 1 << " more in "
                << (milliseconds_since(program_start) - first_token) / static_cast<double>(tokens - 1) << " ms each";
    std::cerr << '\n';
  }
};

/// Encodes the prompts, of which the last `from_file` are the lines of the file. Throws WrongInput, before anything is
/// generated, if a prompt is empty or cannot be encoded.
std::vector<Tokens> encoded(const GenerateArguments& arguments, std::size_t from_file, const OpenedModel& opened) {
  const std::vector<std::string>& prompts = arguments.prompts;
  const std::size_t given = prompts.size() - from_file;
  std::vector<Tokens> encoded;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    try {
      encoded.push_back(opened.prompt(prompts[i]));
      if (encoded.back().empty()) throw Error("the prompt is empty: there is nothing to continue");
    } catch (const Error& error) {
      const std::string place = i >= given ? arguments.prompts_file + ", line " + std::to_string(i - given + 1) + ": "
                                : prompts.size() > 1 ? "prompt " + std::to_string(i + 1) + ": "
                                                     : "";
      throw WrongInput(place + error.what());
    }
  }
  return encoded;
}

void end_line(const std::string& text) {
  if (text.empty() || text.back() != '\n') std::cout << '\n';
}

/// Generates one text and prints it during generation.
void stream_one(OpenedModel& opened, const std::string& prompt, const Tokens& tokens, GenerateArguments& arguments,
                Timings& timings) {
  TextStream stream(opened.tokenizer(), tokens.back(), arguments.stops);
  std::string last = prompt;
  const auto print = [&](const std::string& text) {
    std::cout << text << std::flush;
    if (!text.empty()) last = text;
  };
  print(prompt);
  arguments.options.each = [&](std::int32_t token) {
    timings.count();
    if (!contains(arguments.options.end_tokens, token)) print(stream.add(token));
    return stream.stopped() || interrupted();
  };
  generate(opened.model(), tokens, arguments.options);
  print(stream.finish());
  end_line(last);
}

/// Generates all texts, and then prints them one after the other.
void print_many(OpenedModel& opened, const std::vector<std::string>& prompts, const std::vector<Tokens>& tokens,
                const GenerateArguments& arguments, Timings& timings) {
  std::vector<TextStream> streams;
  std::vector<std::string> texts;
  const auto samples = static_cast<std::size_t>(arguments.options.samples);
  for (std::size_t i = 0; i < prompts.size() * samples; ++i) {
    streams.emplace_back(opened.tokenizer(), tokens[i / samples].back(), arguments.stops);
    texts.push_back(prompts[i / samples]);
  }
  generate_batch(opened.model(), tokens, arguments.options, [&](std::int64_t row, std::int32_t token) {
    timings.count();
    const auto i = static_cast<std::size_t>(row);
    if (!contains(arguments.options.end_tokens, token)) texts[i] += streams[i].add(token);
    return streams[i].stopped() || interrupted();
  });
  for (std::size_t i = 0; i < texts.size(); ++i) {
    texts[i] += streams[i].finish();
    std::cout << texts[i];
    end_line(texts[i]);
  }
}

void generate_texts(GenerateArguments arguments) {
  std::vector<std::string> lines;
  if (!arguments.prompts_file.empty())
    lines = as_wrong_input([&] { return read_lines(arguments.prompts_file, arguments.reading); });
  arguments.prompts.insert(arguments.prompts.end(), lines.begin(), lines.end());
  if (arguments.prompts.empty()) throw WrongInput("there is no prompt: use --prompt TEXT or --prompts FILE");
  OpenedModel opened(Use::texts, arguments.source, arguments.checkpoint, arguments.inference);
  Timings timings;
  timings.opened = milliseconds_since(program_start);
  const std::vector<Tokens> tokens = encoded(arguments, lines.size(), opened);
  arguments.options.context = opened.context();
  arguments.options.end_tokens = opened.end_tokens();
  Sampling& sampling = arguments.options.sampling;
  sampling = as_wrong_input([&] { return opened.sampling(sampling); });
  sampling.temperature = arguments.temperature.value_or(sampling.temperature);
  sampling.top_k = arguments.top_k.value_or(sampling.top_k);
  sampling.top_p = arguments.top_p.value_or(sampling.top_p);
  catch_interrupt();
  if (arguments.prompts.size() == 1 && arguments.options.samples == 1)
    stream_one(opened, arguments.prompts[0], tokens[0], arguments, timings);
  else
    print_many(opened, arguments.prompts, tokens, arguments, timings);
  if (arguments.timings) timings.print();
  if (interrupted()) throw Interrupted();
}

}  // namespace

void add_generate(CLI::App& program) {
  const auto [command, arguments] =
      add_command<GenerateArguments>(program, "generate", "Continue texts with the model of a run or of a folder",
                                     [](const GenerateArguments& given) { generate_texts(given); });
  GenerateOptions& options = arguments.options;
  add_option(command, "SOURCE", arguments.source, "A run directory, or a Hugging Face model folder", required);
  add_checkpoint(command, arguments.checkpoint);
  add_inference(command, arguments.inference);
  add_caches(command, arguments.inference);
  add_option(command, "--prompt", arguments.prompts, "A text to continue; can be repeated", may_be_empty | one_value);
  add_option(command, "--prompts", arguments.prompts_file, "A file of texts to continue, one per line, plain or .gz");
  add_max_line(command, arguments.reading.max_line);
  add_option(command, "--tokens", options.tokens, "The maximum number of tokens to generate", shown | not_negative);
  add_option(command, "--stop", arguments.stops, "Stop before this text; can be repeated", one_value);
  add_option(command, "--num-samples", options.samples, "The number of continuations of each text", shown | positive);
  add_option(command, "--batch-size", options.batch_size, "The number of texts that are continued together",
             shown | positive);
  add_option(command, "--temperature", arguments.temperature,
             "Divides the logits; 0: take the most likely token (default: the folder's, or 1)", not_negative);
  add_option(command, "--top-k", arguments.top_k,
             "Sample from the K most likely tokens; 0: from all (default: the folder's, or 0)", not_negative);
  add_option(command, "--top-p", arguments.top_p,
             "Sample from the most likely tokens whose probabilities reach P (default: the folder's, or 1)")
      ->check(CLI::Range(1e-9, 1.0));
  add_option(command, "--seed", options.sampling.seed, "The seed of sampling", shown);
  command.add_flag("--timings", arguments.timings, "Print timings to the standard error");
}

}  // namespace xtape::cli
