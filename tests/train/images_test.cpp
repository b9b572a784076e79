// Runs on images, from files and a recipe.
#include "xtape/images.hpp"

#include <doctest/doctest.h>

#include <random>

#include "recurrent.hpp"
#include "source_root.hpp"
#include "thread_ranks.hpp"
#include "tiny.hpp"
#include "xtape/safetensors.hpp"

namespace image_runs {

using namespace xtape;

namespace {
const std::string recipe_text = R"json({
  "xtape": 2,
  "name": "bars",
  "definition": ")json" + source_root() +
                                R"json(/models/image_cnn.json",
  "hyper": {"classes": {"from": "labels"}, "channels": {"from": "channels"}, "height": {"from": "height"},
            "width": {"from": "width"}, "filters": 4},
  "data": {"kind": "images", "images": "bars.safetensors", "held_out": 12, "crop": 1, "flip": true,
           "normalise": {"mean": [0.5], "std": 0.25}},
  "batch": {"size": 10, "shards": 2},
  "optimizer": {"kind": "adam"},
  "schedule": {"kind": "constant", "rate": 0.02},
  "epochs": 6,
  "seed": 1
})json";

/// `count` images of 8 x 6 pixels: noise with a row (label 0) or a column (label 1) of white.
void write_bars(const std::string& path, int count) {
  Array images(Dtype::int32, {count, 8, 6}), labels(Dtype::int32, {count});
  std::mt19937 random(3);
  for (int i = 0; i < count; ++i) {
    const int label = static_cast<int>(random() % 2), place = static_cast<int>(random() % 5);
    labels.as<std::int32_t>()[i] = label;
    for (int row = 0; row < 8; ++row)
      for (int column = 0; column < 6; ++column)
        images.as<std::int32_t>()[(i * 8 + row) * 6 + column] =
            (label == 0 ? row : column) == place ? 255 : static_cast<std::int32_t>(random() % 90);
  }
  save_arrays(path, {{"images", images}, {"labels", labels}});
}

Recipe loaded(const tiny::Directory& directory, const std::vector<Setting>& settings = {}) {
  if (!std::filesystem::exists(directory / "bars.safetensors")) write_bars(directory / "bars.safetensors", 60);
  return Recipe::load(directory.write("recipe.json", recipe_text), settings);
}

/// The weights after seven updates, on ranks of these hosts.
Store trained(const std::string& file, const std::vector<int>& hosts) {
  Store weights;
  testing::run_ranks(hosts, [&](const std::shared_ptr<Communicator>& communicator) {
    const Images images = read_images(file);
    const ImageBatches batches(images, images, {10, 1, {{0.5}, {0.25}, true, 1}});
    Model model = Model::load(source_root() + "/models/image_cnn.json",
                              {.hyper = {{"classes", "2"}, {"filters", "4"}, {"width", "6"}}, .seed = 2});
    TrainerOptions options = recurrent::options_of();
    options.shards = 2;
    options.communicator = hosts.size() == 1 ? nullptr : communicator;
    Trainer trainer(model, batches, options);
    for (int i = 0; i < 7; ++i) trainer.update();
    if (communicator->rank() == 0) weights = recurrent::copy_of(model.weights());
  });
  return weights;
}
}  // namespace

TEST_CASE("training on images has the same bits on any number of ranks") {
  const tiny::Directory directory;
  const std::string file = directory / "bars.safetensors";
  write_bars(file, 60);
  const Store alone = trained(file, {0});
  CHECK(recurrent::same_weights(alone, trained(file, {0, 0})));
  CHECK(recurrent::same_weights(alone, trained(file, {0, 1})));
}

TEST_CASE("a run on images learns, and resumes with the same bits") {
  const tiny::Directory directory;
  Run whole = Run::create(loaded(directory), directory / "alone");
  CHECK(whole.train());
  {
    Run run = Run::create(loaded(directory), directory / "stopped");
    int updates = 0;
    Trainer::Callbacks callbacks;
    callbacks.step = [&](const StepReport&) { ++updates; };
    callbacks.stop = [&] { return updates == 13; };
    CHECK_FALSE(run.train(callbacks));
  }
  Run resumed = Run::resume(directory / "stopped");
  CHECK(resumed.train());
  CHECK(recurrent::same_weights(whole.model().weights(), resumed.model().weights()));

  Run opened = Run::open(directory / "alone");
  CHECK(opened.labels() == std::vector<std::string>{"0", "1"});
  CHECK(opened.model().hyper().integer("height") == 8);
  CHECK(opened.model().hyper().integer("width") == 6);
  const Evaluation evaluation = opened.evaluate();
  CHECK(evaluation.tokens == 12);
  CHECK(*evaluation.accuracy == 1);
  CHECK_THROWS_WITH_AS(opened.tokenizer(), "this run has no tokenizer: its data is images, and its recipe names none",
                       Error);
  CHECK_THROWS_WITH_AS(opened.evaluate(true), doctest::Contains("no test split"), Error);
}

TEST_CASE("a run on arrays of images says how its export prepares images, if they are grey or coloured") {
  for (const std::int64_t channels : {1, 2, 3}) {
    CAPTURE(channels);
    const tiny::Directory directory;
    Array images(Dtype::int32, {4, channels, 4, 4}), labels(Dtype::int32, {4});
    labels.as<std::int32_t>()[0] = 1;
    save_arrays(directory / "bars.safetensors", {{"images", images}, {"labels", labels}});
    Run::create(loaded(directory, {{"definition", source_root() + "/models/vit.json"},
                                   {"hyper.filters", "null"},
                                   {"hyper.patch_height", "2"},
                                   {"hyper.d_model", "4"},
                                   {"hyper.layers", "1"},
                                   {"hyper.heads", "1"},
                                   {"data.held_out", "2"}}),
                directory / "run");
    const std::string folder = directory / "run/hugging_face";
    CHECK(std::filesystem::exists(folder + "/" + preparation_file) == (channels != 2));
    if (channels == 2) continue;
    const ImagePreparation preparation = read_image_preparation(folder, channels);
    CHECK(preparation.numbers.mean == std::vector<double>(static_cast<std::size_t>(channels), 0.5));
    CHECK(preparation.numbers.deviation == std::vector<double>(static_cast<std::size_t>(channels), 0.25));
  }
}

TEST_CASE("runs on images: errors of recipes and data") {
  const tiny::Directory directory;
  const auto complaint = [&](const std::vector<Setting>& settings) -> std::string {
    try {
      Run::create(loaded(directory, settings), directory / "run");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const auto has = [&](const std::vector<Setting>& settings, const char* part) {
    const std::string text = complaint(settings);
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  };
  has({{"data.images", "nowhere.safetensors"}}, "nowhere.safetensors: No such file");
  // 48 images in batches of 10, two of which make an update.
  for (const auto& [epochs, counted] : {std::pair("2", "2 epochs of this data are 5 updates, fewer than the 6 of"),
                                        {"1", "1 epoch of this data is 3 updates, fewer than the 6 of"}})
    has({{"schedule", R"({"kind": "cosine", "rate": 0.1, "warmup": 6})"},
         {"batch.accumulate", "2"},
         {"epochs", epochs}},
        counted);
  CHECK(!std::filesystem::exists(directory / "run"));
  has({{"data.channels", "2"}}, "must be 1 (grey) or 3");
  has({{"data.normalise.std", "0"}}, "must be above 0");
  has({{"data.normalise.std", "[1, 2]"}}, "deviation must have one number, or one for each of the 1 channels");
  has({{"data.normalise.mean", "\"x\""}}, "must be a number, or a list of one for each channel");
  has({{"data.crop", "9"}}, "crop must be 0 to 6");
  has({{"data.max_length", "3"}}, "max_length");
  has({{"tokenizer", "{\"kind\": \"words\"}"}}, "is for texts, not for images");
  has({{"batch.tokens", "64"}}, "tokens");
  has({{"hyper.height", "{\"from\": \"columns\"}"}}, "columns");
  write_bars(directory / "few.safetensors", 3);
  save_arrays(directory / "third.safetensors",
              {{"images", Array(Dtype::int32, {1, 8, 6})}, {"labels", [] {
                                                              Array label(Dtype::int64, {1});
                                                              label.as<std::int64_t>()[0] = 2;
                                                              return label;
                                                            }()}});
  const std::string third = directory / "third.safetensors";
  CHECK(complaint({{"data.validation_images", third}, {"data.held_out", "null"}}) != "");
  has({{"data.validation_images", third}}, "third.safetensors, image 1: the training split has no label '2'");
}

}  // namespace image_runs
