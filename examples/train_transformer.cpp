// Trains a small Transformer (models/transformer.json) to translate Portuguese number words into English number words,
// then translates some held-out numbers with beam search.
// usage: train_transformer FOLDER [STEPS]
// FOLDER contains training.tsv and validation.tsv, with a line portuguese<TAB>english for each number. The command
// `build/examples/data/number_words FOLDER 20000 200` writes both files.
#include <cstdlib>
#include <iostream>
#include <string>
#include <xtape/xtape.hpp>

using namespace xtape;

namespace {

Model small_transformer(const Tokenizer& source, const Tokenizer& target) {
  ModelOptions options;
  options.seed = 1;
  options.hyper = {{"source_vocab_size", std::to_string(source.size())},
                   {"target_vocab_size", std::to_string(target.size())},
                   {"d_model", "64"},
                   {"d_ff", "128"},
                   {"heads", "4"},
                   {"encoder_layers", "2"},
                   {"decoder_layers", "2"},
                   {"shared_embeddings", "false"},
                   {"tied_output", "false"},
                   {"dropout_rate", "0"},
                   {"label_smoothing", "0"}};
  return Model::load("transformer", options);
}

TrainerOptions training(std::int64_t steps) {
  TrainerOptions options;
  options.optimizer.kind = OptimizerOptions::Kind::adam;
  options.optimizer.beta2 = 0.98;
  options.schedule.kind = ScheduleOptions::Kind::cosine;
  options.schedule.rate = 2e-3;
  options.schedule.warmup = steps / 6;
  options.schedule.steps = steps;
  options.clip = 1;
  return options;
}

}  // namespace

int main(int argc, char** argv) try {
  Trainer::FitOptions fit;
  fit.steps = argc > 2 ? std::atoi(argv[2]) : 800;
  if (argc < 2 || argc > 3 || fit.steps < 1) throw Error("usage: train_transformer FOLDER [STEPS]");
  const std::string folder = argv[1];

  // The padding, start and end tokens of word tokenizers are 0, 2 and 3, which are the defaults of SearchOptions.
  const PairTexts training_texts = read_pairs(folder + "/training.tsv");
  const PairTexts held_out = read_pairs(folder + "/validation.tsv");
  const WordTokenizer source(training_texts.source);
  const WordTokenizer target(training_texts.target);
  const RowBatches batches(pairs_of(training_texts, source, target), pairs_of(held_out, source, target), {});

  Model model = small_transformer(source, target);
  Trainer trainer(model, batches, training(fit.steps));
  Trainer::Callbacks callbacks;
  callbacks.step = [](const StepReport& report) {
    if (report.step % 50 == 0) std::cout << "step " << report.step << ": loss " << report.loss << std::endl;
  };
  Evaluation last;
  callbacks.evaluation = [&](const Evaluation& evaluation) { last = evaluation; };
  trainer.fit(fit, callbacks);
  std::cout << "held out: loss " << last.loss << ", accuracy " << *last.accuracy << "\n\n";

  SearchOptions options;
  options.beam_size = 4;
  options.length_penalty = LengthPenalty::wu;
  options.max_length = 40;
  std::vector<Tokens> lines;
  for (std::size_t i = 0; i < 5; ++i) lines.push_back(framed(source, held_out.source[i]));
  const auto hypotheses = search(model, lines, options);
  for (std::size_t i = 0; i < lines.size(); ++i)
    std::cout << "source       " << held_out.source[i] << "\ntranslation  " << target.decode(hypotheses[i][0].tokens)
              << "\nreference    " << held_out.target[i] << "\n\n";
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
