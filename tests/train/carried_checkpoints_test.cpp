// Carried states in checkpoints and runs.
#include <doctest/doctest.h>

#include "recurrent.hpp"
#include "run_files.hpp"
#include "tiny.hpp"

using namespace recurrent;

TEST_CASE("a training run continued in the middle of an epoch gives the same bits") {
  const TextBatches batches = batches_of(2, 8);  // six batches an epoch
  for (const std::int64_t accumulate : {1, 2}) {
    const tiny::Directory directory;
    Model straight = model_of("0.3");
    Trainer first(straight, batches, options_of(accumulate));
    std::vector<double> losses;
    for (int i = 0; i < 10; ++i) {
      if (i == 4) first.save(directory / "checkpoint");
      if (i == 6) first.save(directory / "between_epochs");
      losses.push_back(first.update().loss);
    }
    CHECK(tiny::fs::exists(directory / "checkpoint/carried.safetensors"));
    CHECK(!tiny::fs::exists(directory / "between_epochs/carried.safetensors"));
    for (const int at : {4, 6}) {
      Model other = model_of("0.3");
      Trainer second(other, batches, options_of(accumulate));
      second.update();
      second.load(directory / (at == 4 ? "checkpoint" : "between_epochs"));
      for (int i = at; i < 10; ++i) CHECK(second.update().loss == losses[static_cast<std::size_t>(i)]);
      CHECK(same_weights(straight.weights(), other.weights()));
    }
  }
}

TEST_CASE("a checkpoint without the states, or with other states, is an error and changes nothing") {
  const tiny::Directory directory;
  const TextBatches batches = batches_of(2, 8);
  Model model = model_of();
  Trainer trainer(model, batches, options_of());
  trainer.update();
  trainer.save(directory / "checkpoint");
  Model fresh = model_of();
  const Store before = copy_of(fresh.weights());
  // Three rows with the same number of windows.
  const TextBatches wider = batches_of(3, 8, true, 150);
  REQUIRE(wider.epoch_batches() == batches.epoch_batches());
  Trainer three(fresh, wider, options_of());
  const train::State kept = train::read_state(directory / "checkpoint");
  train::State without_order = kept;  // as earlier versions wrote it
  without_order.order = 0;
  train::write_state(directory / "checkpoint", without_order);
  CHECK_THROWS_WITH_AS(three.load(directory / "checkpoint"),
                       doctest::Contains("carried.safetensors does not hold 'h' as float32 (2, 3, 6): the model or the "
                                         "number of rows is different"),
                       FileError);
  CHECK(same_weights(fresh.weights(), before));
  train::write_state(directory / "checkpoint", kept);
  Model other = model_of();
  Trainer restarted(other, wider, options_of());
  restarted.load(directory / "checkpoint");  // the epoch starts again
  CHECK(restarted.step() == 1);
  CHECK(restarted.update().step == 2);
  tiny::fs::remove(directory / "checkpoint/carried.safetensors");
  Trainer again(fresh, batches, options_of());
  CHECK_THROWS_WITH_AS(again.load(directory / "checkpoint"),
                       doctest::Contains("has no carried.safetensors: the next batch continues from carried states, "
                                         "'h' as float32 (2, 2, 6)"),
                       FileError);
  CHECK(again.step() == 0);
  CHECK(same_weights(fresh.weights(), before));
  // At the start of an epoch there are no states to continue from, nor with random blocks.
  const TextBatches narrower = batches_of(2, 7);
  Trainer shorter(fresh, narrower, options_of());
  shorter.load(directory / "checkpoint");
  CHECK(shorter.step() == 1);
  const TextBatches random = batches_of(2, 8, false);
  Trainer drawn(fresh, random, options_of());
  drawn.load(directory / "checkpoint");
  CHECK(drawn.step() == 1);
}

TEST_CASE("a model without states trains on consecutive windows") {
  const tiny::Directory directory;
  const TextBatches batches = batches_of(2, 8);
  Model model = Model::parse(tiny::definition, {.hyper = {}, .seed = 5}, "tiny.json");
  Trainer trainer(model, batches, options_of());
  for (int i = 0; i < 3; ++i) trainer.update();
  trainer.save(directory / "checkpoint");
  CHECK(!tiny::fs::exists(directory / "checkpoint/carried.safetensors"));
  Model other = Model::parse(tiny::definition, {.hyper = {}, .seed = 5}, "tiny.json");
  Trainer second(other, batches, options_of());
  second.load(directory / "checkpoint");
  CHECK(trainer.update().loss == second.update().loss);
  CHECK(trainer.evaluate().tokens == 49);
}

TEST_CASE("a run on consecutive windows, stopped in an epoch and continued, equals the uninterrupted run") {
  const tiny::Directory directory;
  directory.write("recurrent.json", definition);
  std::string text;
  for (const std::int32_t token : babble(300)) text += static_cast<char>('a' + token);
  directory.write("text.txt", text);
  const Recipe recipe = Recipe::load(directory.write("recipe.json", R"json({
    "xtape": 2, "name": "windows", "definition": "recurrent.json",
    "hyper": {"vocab_size": {"from": "vocabulary"}, "rate": 0.2},
    "data": {"kind": "text", "text": "text.txt", "block_size": 8, "windows": "consecutive"},
    "batch": {"size": 4},
    "optimizer": {"kind": "adamw"}, "schedule": {"kind": "constant", "rate": 0.01},
    "epochs": 2, "seed": 4
  })json"));
  Run whole = Run::create(recipe, directory / "whole");
  CHECK(whole.batches().epoch_batches() == 8);  // 270 tokens in 4 strips of 67
  CHECK(whole.train());
  CHECK(whole.trainer().step() == 16);
  CHECK(names(directory / "whole") == std::vector<std::string>{"00000008", "00000016"});
  {
    Run run = Run::create(recipe, directory / "parts");
    Trainer::Callbacks callbacks;
    callbacks.stop = [&] { return run.trainer().step() == 5; };
    CHECK(!run.train(callbacks));
  }
  CHECK(tiny::fs::exists(directory / "parts/checkpoints/00000005/carried.safetensors"));
  Run resumed = Run::open(directory / "parts");
  CHECK(resumed.train());
  CHECK(same_bits(directory / "whole/checkpoints/00000016", directory / "parts/checkpoints/00000016"));
  CHECK(metrics(directory / "whole") == metrics(directory / "parts"));
}
