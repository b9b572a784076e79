/// xtape generate: continues a text with a run's model.
#include <iostream>
#include <memory>

#include "commands.hpp"
#include "run_words.hpp"
#include "xtape/decode.hpp"
#include "xtape/train.hpp"

namespace xtape::cli {
namespace {

struct Words {
  std::string run;
  std::string checkpoint = "last";
  std::string prompt;
  std::int64_t tokens = 0;
  Sampling sampling;
};

/// What a token adds to the text; between words that is a space, too.
std::string text_after(const Tokenizer& tokenizer, std::int32_t before, std::int32_t token) {
  return tokenizer.decode({before, token}).substr(tokenizer.decode({before}).size());
}

void generate(const Words& words) {
  GenerateOptions options;
  options.tokens = words.tokens;
  options.sampling = words.sampling;
  Tokens prompt;
  Run run = of_the_input([&] {
    Run opened = Run::open(words.run, {}, CheckpointChoice::parse(words.checkpoint));
    if (opened.recipe().data.has_pairs())
      throw WrongInput(words.run + " is a run on sentence pairs: xtape translate is for those");
    prompt = opened.prompt(words.prompt);
    if (prompt.empty()) throw WrongInput("the prompt is empty: there is nothing to continue");
    options.context = opened.columns();
    options.end_token = opened.end_token();
    return opened;
  });
  catch_interrupt();
  std::cout << words.prompt << std::flush;
  std::int32_t before = prompt.back();
  options.each = [&](std::int32_t token) {
    const std::string text = text_after(run.tokenizer(), before, token);
    std::cout << text << std::flush;
    if (!text.empty()) before = token;  // pad, start and end are no text
    return interrupted();
  };
  const Tokens made = xtape::generate(run.model(), prompt, options);
  if (made.empty() || run.tokenizer().decode({made.back()}) != "\n") std::cout << '\n';
  if (interrupted()) throw Interrupted();
}

}  // namespace

void add_generate(CLI::App& program) {
  CLI::App* command = program.add_subcommand("generate", "Continue a text with a run's model");
  const auto words = std::make_shared<Words>();
  command->add_option("RUN", words->run, "A run directory")->required();
  add_checkpoint(*command, words->checkpoint);
  command->add_option("--prompt", words->prompt, "The text to continue")->required();
  command->add_option("--tokens", words->tokens, "How many tokens to generate")
      ->required()
      ->check(CLI::NonNegativeNumber);
  command->add_option("--temperature", words->sampling.temperature, "Divides the logits; 0: the most likely token")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command->add_option("--top-k", words->sampling.top_k, "Only the K most likely tokens; 0: all")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command->add_option("--top-p", words->sampling.top_p, "Only the most likely tokens that together reach P")
      ->capture_default_str()
      ->check(CLI::Range(1e-9, 1.0));
  command->add_option("--seed", words->sampling.seed, "Of the draws")->capture_default_str();
  command->callback([words] { generate(*words); });
}

}  // namespace xtape::cli
