// One model, and two threads that record its functions, differentiate and play at once.
#include <doctest/doctest.h>

#include <cstring>
#include <latch>
#include <thread>

#include "definitions.hpp"
#include "transformer.hpp"

using namespace xtape;
using namespace xtape::test::transformer;

namespace {
/// Every bit that some work gave.
using BitTexts = std::vector<std::string>;

void note(BitTexts& bits, const Player& player, const Vars& outputs) {
  for (const Var& output : outputs) {
    const Array values(player.view(output));
    bits.emplace_back(static_cast<const char*>(values.data()), values.bytes());
  }
}

PlayerOptions on_one_thread() {
  PlayerOptions options;
  options.threads = 1;
  options.seed = 5;
  return options;
}

/// A training step's loss and gradients.
void train(const Model& model, BitTexts& bits) {
  const Example batch;
  Tape tape(Mode::train);
  const NamedVars inputs = model.inputs(tape, "loss", {{"b", 2}, {"s", 5}, {"t", 4}});
  const Vars outputs = test::mean_loss_and_gradients(model, tape, inputs);
  Player player(tape, outputs, on_one_thread());
  const std::vector<Feed> feeds =
      feeds_of(inputs, {{"source", batch.source}, {"tokens", batch.tokens}, {"targets", batch.targets}});
  for (std::uint64_t step = 0; step < 2; ++step) {
    player.play(feeds, step);
    note(bits, player, outputs);
  }
}

/// The logits of sentences of several lengths.
void evaluate(const Model& model, BitTexts& bits) {
  for (const std::int64_t length : {3, 6}) {
    Tape tape(Mode::eval);
    const NamedVars inputs = model.inputs(tape, "logits", {{"b", 2}, {"s", 5}, {"t", length}});
    const Vars outputs{model.record(tape, "logits", inputs)[0].value};
    Player player(tape, outputs, on_one_thread());
    const Rows source = Example().source, tokens = sentences({length, 2}, length, 4);
    player.play(feeds_of(inputs, {{"source", source}, {"tokens", tokens}}));
    note(bits, player, outputs);
  }
}

BitTexts worked(const Model& model, bool training_first) {
  BitTexts bits;
  for (int round = 0; round < 3; ++round) {
    (training_first ? train : evaluate)(model, bits);
    (training_first ? evaluate : train)(model, bits);
  }
  return bits;
}
}  // namespace

TEST_CASE("two threads that record and play one model at once get the bits that each gets by itself") {
  const Model model = load({{"dropout_rate", "0.1"}});
  BitTexts together[2];
  std::latch start(2);
  const auto work = [&](int thread) {
    start.arrive_and_wait();
    together[thread] = worked(model, thread == 0);
  };
  std::thread first(work, 0), second(work, 1);
  first.join();
  second.join();
  for (const int thread : {0, 1}) {
    const BitTexts alone = worked(model, thread == 0);
    REQUIRE(alone.size() == 3 * (2 * (1 + model.weights().size()) + 2));
    CHECK(std::any_of(alone[0].begin(), alone[0].end(), [](char each) { return each != 0; }));
    CHECK(together[thread] == alone);
  }
}
