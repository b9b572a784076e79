// models/lstm_attention.json and models/transformer_lm.json against NMTAttn and TransformerLM assembled in PyTorch
// (sequence_models.py): log-probabilities, every gradient, and ten steps of Adam.
#include "fixture.hpp"
#include "source_root.hpp"

using namespace xtape;
using test::numbers;

namespace {
using Settings = std::vector<std::pair<std::string, std::string>>;

void check_all(const std::string& definition, const std::string& file, Settings hyper, const NamedSizes& sizes) {
  CAPTURE(file);
  const Store fixture = test::golden(file);
  ModelOptions options;
  options.dtype = Dtype::float64;
  options.initialise = false;
  options.hyper = std::move(hyper);
  options.hyper.emplace_back("dropout_rate", "0.0");
  options.hyper.emplace_back("heads", "2");
  Model model = Model::load(source_root() + "/models/" + definition, options);
  test::put_weights(model, fixture);

  const auto planned = model.player("log_probabilities", Mode::eval, sizes);
  std::vector<Feed> feeds;
  for (const auto& [input, var] : planned->inputs)
    feeds.emplace_back(var, fixture.at(input == "targets" ? "sentences" : input));
  planned->player.play(feeds);
  CHECK(test::worst(numbers(planned->player.view(planned->results[0].value)),
                    numbers(fixture.at("log_probabilities"))) < 1e-13);

  test::check_gradients(model, fixture, sizes, {});
  test::check_gradients(model, fixture, sizes, test::by_reference());
  test::check_training(model, fixture, sizes, 1e-12);
}
}  // namespace

TEST_CASE("NMTAttn: PyTorch's log-probabilities, loss, every gradient and ten losses of Adam") {
  check_all("lstm_attention.json", "lstm_attention.safetensors",
            {{"source_vocab_size", "13"},
             {"target_vocab_size", "11"},
             {"width", "8"},
             {"order", "'i_g_f_o'"},
             {"forget_bias", "1.0"}},
            {{"b", 3}, {"s", 6}, {"t", 5}});
}

TEST_CASE("TransformerLM: PyTorch's log-probabilities, loss, every gradient and ten losses of Adam") {
  for (const std::string activation : {"relu", "gelu"})
    check_all("transformer_lm.json", "transformer_lm_" + activation + ".safetensors",
              {{"vocab_size", "11"}, {"d_model", "8"}, {"d_ff", "12"}, {"layers", "2"}, {"activation", activation}},
              {{"b", 3}, {"t", 5}});
}
