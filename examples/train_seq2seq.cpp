// Trains GRUs with additive attention (models/gru_attention.json) to convert dates, written in numbers or in six
// languages, to ISO 8601. Counts the held-out dates that are converted correctly, and draws the attention for one date.
// usage: train_seq2seq FOLDER [STEPS]
// FOLDER contains training.tsv and validation.tsv, with a line written<TAB>iso for each date. The command
// `build/examples/data/dates FOLDER 20000 200` writes both files.
#include <cstdlib>
#include <iostream>
#include <string>
#include <xtape/xtape.hpp>

using namespace xtape;

namespace {

Model small_model(const Tokenizer& source, const Tokenizer& target) {
  ModelOptions options;
  options.seed = 1;
  options.hyper = {{"source_vocab_size", std::to_string(source.size())},
                   {"target_vocab_size", std::to_string(target.size())},
                   {"embedding_dim", "32"},
                   {"units", "64"},
                   {"directions", "2"}};
  return Model::load("gru_attention", options);
}

/// Prints a row for each token written and a column for each token read. Darker characters mean more attention.
void draw_attention(Model& model, const Tokenizer& source, const Tokenizer& target, const Tokens& read,
                    const Tokens& written) {
  const std::string shades = " .:-=+*#%@";
  Tokens tokens = {target.start()};
  tokens.insert(tokens.end(), written.begin(), written.end());
  const Store seen = model.play("attention", {{"source", token_array({read})}, {"tokens", token_array({tokens})}});
  const Array& weights = seen.at("cross");  // [1, 1, 1, tokens, read]
  const float* weight = weights.as<float>();
  std::cout << "  |" << source.decode(read) << "|  (| is where it starts and ends)\n";
  for (std::size_t row = 0; row < tokens.size(); ++row) {
    std::cout << (row < written.size() ? target.decode({written[row]}) : "|") << ' ';
    for (std::size_t column = 0; column < read.size(); ++column)
      std::cout << shades[static_cast<std::size_t>(9.99F * *weight++)];
    std::cout << '\n';
  }
}

}  // namespace

int main(int argc, char** argv) try {
  Trainer::FitOptions fit;
  fit.steps = argc > 2 ? std::atoi(argv[2]) : 1000;
  if (argc < 2 || argc > 3 || fit.steps < 1) throw Error("usage: train_seq2seq FOLDER [STEPS]");
  const std::string folder = argv[1];

  const PairTexts training_texts = read_pairs(folder + "/training.tsv");
  const PairTexts held_out = read_pairs(folder + "/validation.tsv");
  // held-out dates may contain characters that are not in the training data
  const auto unknown = CharacterTokenizer::Unknown::token;
  const CharacterTokenizer source(training_texts.source, unknown, true);
  const CharacterTokenizer target(training_texts.target, unknown, true);
  const RowBatches batches(pairs_of(training_texts, source, target), pairs_of(held_out, source, target), {});

  Model model = small_model(source, target);
  TrainerOptions training;
  training.optimizer.kind = OptimizerOptions::Kind::adam;
  training.schedule.rate = 5e-3;
  training.clip = 1;
  Trainer trainer(model, batches, training);
  Trainer::Callbacks callbacks;
  callbacks.step = [](const StepReport& report) {
    if (report.step % 50 == 0) std::cout << "step " << report.step << ": loss " << report.loss << std::endl;
  };
  callbacks.evaluation = [](const Evaluation& evaluation) { std::cout << "held-out loss " << evaluation.loss << '\n'; };
  trainer.fit(fit, callbacks);

  std::vector<Tokens> lines;
  for (const std::string& line : held_out.source) lines.push_back(framed(source, line));
  SearchOptions greedy;
  greedy.max_length = 12;
  const auto hypotheses = search(model, lines, greedy);
  std::size_t correct = 0;
  for (std::size_t i = 0; i < lines.size(); ++i)
    correct += target.decode(hypotheses[i][0].tokens) == held_out.target[i] ? 1 : 0;
  std::cout << correct << " of " << lines.size() << " held-out dates are exactly right\n\n";
  draw_attention(model, source, target, lines[0], hypotheses[0][0].tokens);
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
