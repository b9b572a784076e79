/// xtape eval: how good a run's model is on its validation part.
#include <iostream>
#include <memory>

#include "commands.hpp"
#include "run_words.hpp"
#include "xtape/train.hpp"

namespace xtape::cli {
namespace {

constexpr std::int64_t sampled_batches = 20;  // as nanoGPT's published losses are averaged

struct Words {
  std::string run;
  std::string checkpoint = "last";
  std::string source;
  std::string target;
  std::vector<std::string> set;
};

void evaluate(const Words& words) {
  Run run = of_the_input([&] {
    Run opened = Run::open(words.run, parse_settings(words.set), CheckpointChoice::parse(words.checkpoint));
    if (words.source.empty()) opened.batches();
    return opened;
  });
  const Evaluation evaluation = words.source.empty() ? run.evaluate() : of_the_input([&] {
    return run.evaluate(read_lines(words.source), read_lines(words.target));
  });
  std::cout.precision(6);
  std::cout << "step " << evaluation.step << "\nvalidation_loss " << evaluation.loss << "\ntokens " << evaluation.tokens
            << '\n';
  if (evaluation.perplexity) std::cout << "perplexity " << *evaluation.perplexity << '\n';
  if (evaluation.accuracy) std::cout << "accuracy " << *evaluation.accuracy << '\n';
  if (evaluation.bleu) std::cout << "bleu " << *evaluation.bleu << '\n';
  if (evaluation.exact_match)
    std::cout << "exact_match " << *evaluation.exact_match << "\nquestions " << evaluation.questions << '\n';
  if (run.recipe().data.kind == "text")
    std::cout << "loss_of_" << sampled_batches << "_random_batches " << run.sampled_loss(sampled_batches) << '\n';
}

}  // namespace

void add_eval(CLI::App& program) {
  CLI::App* command = program.add_subcommand("eval", "Evaluate a run on the whole of its validation part");
  const auto words = std::make_shared<Words>();
  command->add_option("RUN", words->run, "A run directory")->required();
  add_checkpoint(*command, words->checkpoint);
  auto* source =
      command->add_option("--source", words->source, "Evaluate on this text, a sentence a line, plain or .gz …");
  auto* target =
      command->add_option("--target", words->target, "… and its translation, in place of the validation part");
  source->needs(target);
  target->needs(source);
  add_settings(*command, words->set);
  command->callback([words] { evaluate(*words); });
}

}  // namespace xtape::cli
