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
  std::vector<std::string> set;
};

void evaluate(const Words& words) {
  Run run = of_the_input([&] {
    Run opened = Run::open(words.run, parse_settings(words.set));
    opened.batches();
    return opened;
  });
  const Evaluation evaluation = run.evaluate();
  std::cout.precision(6);
  std::cout << "step " << evaluation.step << "\nvalidation_loss " << evaluation.loss << "\ntokens " << evaluation.tokens
            << '\n';
  if (evaluation.exact_match)
    std::cout << "exact_match " << *evaluation.exact_match << "\nquestions " << evaluation.questions << '\n';
  else
    std::cout << "loss_of_" << sampled_batches << "_random_batches " << run.sampled_loss(sampled_batches) << '\n';
}

}  // namespace

void add_eval(CLI::App& program) {
  CLI::App* command = program.add_subcommand("eval", "Evaluate a run on the whole of its validation part");
  const auto words = std::make_shared<Words>();
  command->add_option("RUN", words->run, "A run directory")->required();
  add_settings(*command, words->set);
  command->callback([words] { evaluate(*words); });
}

}  // namespace xtape::cli
