// A ViT in a folder as transformers saves it, against what transformers computes on it (vit.py).
#include <nlohmann/json.hpp>

#include "fixture.hpp"
#include "folders.hpp"
#include "source_root.hpp"
#include "xtape/hugging_face.hpp"
#include "xtape/images.hpp"

using namespace xtape;
using test::Folder;
using test::numbers;

namespace {
const std::string vit_folder = source_root() + "/tests/golden/data/vit/model";

Array vit_expected(const std::string& what) {
  static const Store arrays = test::golden("vit/expected.safetensors");
  return Array(arrays.at(what));
}
/// The expected images as `dtype`, which holds them exactly.
Array vit_images(Dtype dtype) {
  Array single = vit_expected("images");
  if (dtype == Dtype::float32) return single;
  Array array(dtype, single.shape());
  std::copy(single.as<float>(), single.as<float>() + single.count(), array.as<double>());
  return array;
}
Model opened_vit(Dtype dtype = Dtype::float64, const std::string& from = vit_folder) {
  ModelOptions options;
  options.dtype = dtype;
  return open_hugging_face(from, options, source_root() + "/models/vit.json");
}
double vit_difference(Model model, const std::string& function, const std::string& result) {
  const Array found = model.play(function, {{"images", vit_images(model.dtype())}})[0].value;
  REQUIRE(found.shape() == vit_expected(result).shape());
  return test::worst(numbers(found), numbers(vit_expected(result)));
}
/// The folder with another value in config.json.
std::string changed_vit(const Folder& copy, const std::string& key, const nlohmann::json& value) {
  auto config = nlohmann::json::parse(std::ifstream(copy / "config.json"));
  config[key] = value;
  copy.write("config.json", config.dump(1));
  return copy.path();
}
}  // namespace

TEST_CASE("ViT in a folder: states and logits in either dtype, without warnings") {
  CHECK(vit_difference(opened_vit(), "encode", "states") < 1e-12);
  CHECK(vit_difference(opened_vit(), "logits", "logits") < 1e-12);
  CHECK(vit_difference(opened_vit(Dtype::float32), "logits", "logits") < 5e-6);
  CHECK(hugging_face_warnings(vit_folder, source_root() + "/models/vit.json").empty());
  CHECK(opened_vit().hyper().integer("classes") == 3);
}

TEST_CASE("ViT in a folder: loss and every gradient, with rules and without") {
  for (const PlayerOptions& options : {PlayerOptions{}, test::by_reference()}) {
    const Store batch{{"images", vit_images(Dtype::float64)}, {"label", vit_expected("label")}};
    const test::Recorded recorded(opened_vit(), batch, NamedSizes{{"b", 3}});
    Player player(recorded.tape, recorded.outputs(), options);
    player.play(recorded.feeds);
    CHECK(std::fabs(player.scalar(recorded.loss) - numbers(vit_expected("loss"))[0]) < 1e-12);
    REQUIRE(recorded.weights.size() == 40);
    for (std::size_t i = 0; i < recorded.weights.size(); ++i) {
      CAPTURE(recorded.weights[i].name);
      CHECK(test::worst(test::weighted_sums(numbers(player.view(recorded.gradients[i]))),
                        numbers(vit_expected("grad." + recorded.weights[i].name))) < 1e-11);
    }
  }
}

TEST_CASE("ViT in a folder: written again, with the words of the config; a size may be a list") {
  const Folder to;
  save_hugging_face(opened_vit(), to.path(), vit_folder);
  CHECK(vit_difference(opened_vit(Dtype::float64, to.path()), "logits", "logits") < 1e-12);
  const auto before = nlohmann::json::parse(std::ifstream(vit_folder + "/config.json")),
             after = nlohmann::json::parse(std::ifstream(to / "config.json"));
  for (const char* key : {"architectures", "id2label", "image_size", "patch_size", "num_channels"})
    CHECK(after[key] == before[key]);
  const Folder listed(vit_folder);
  CHECK(vit_difference(opened_vit(Dtype::float64, changed_vit(listed, "image_size", {24, 24})), "logits", "logits") <
        1e-12);
  CHECK(vit_difference(opened_vit(Dtype::float64, changed_vit(listed, "patch_size", {8, 8})), "logits", "logits") <
        1e-12);
  ModelOptions options;  // 36 patches of 8 x 4
  options.hyper = {{"height", "24"}, {"width", "48"}, {"patch_height", "8"}, {"patch_width", "4"},
                   {"d_model", "8"}, {"layers", "1"}, {"heads", "2"}};
  const Model drawn = Model::load(source_root() + "/models/vit.json", options);
  CHECK(drawn.weights().at("embeddings.position_embeddings").shape() == Shape{1, 37, 8});
}

TEST_CASE("ViT in a folder: a config with num_labels instead of names of labels") {
  const Folder copy(vit_folder), to, fewer;
  auto config = nlohmann::json::parse(std::ifstream(copy / "config.json"));
  config.erase("id2label");
  config.erase("label2id");
  config["num_labels"] = 3;
  copy.write("config.json", config.dump(1));
  CHECK(vit_difference(opened_vit(Dtype::float64, copy.path()), "logits", "logits") < 1e-12);
  const auto config_of = [](const Folder& folder) {
    return nlohmann::json::parse(std::ifstream(folder / "config.json"));
  };
  save_hugging_face(opened_vit(Dtype::float64, copy.path()), to.path(), copy.path());
  CHECK(config_of(to)["num_labels"] == 3);
  CHECK(!config_of(to).contains("id2label"));
  // With another number of labels they have names, and no key contradicts these.
  ModelOptions options;
  options.hyper = {{"classes", "4"}};
  save_hugging_face(open_hugging_face(copy.path(), options, source_root() + "/models/vit.json", {"classifier.*"}),
                    fewer.path(), copy.path());
  CHECK(config_of(fewer)["id2label"].size() == 4);
  CHECK(!config_of(fewer).contains("num_labels"));
  config["id2label"] = {{"0", "cat"}, {"1", "dog"}, {"2", "tram"}};
  config["num_labels"] = 5;
  copy.write("config.json", config.dump(1));
  save_hugging_face(opened_vit(Dtype::float64, copy.path()), to.path(), copy.path());
  CHECK(config_of(to)["id2label"].size() == 3);
  CHECK(!config_of(to).contains("num_labels"));
}

TEST_CASE("ViT in a folder: images are prepared as its preprocessor_config.json says") {
  const Store prepared = test::golden("vit/prepared.safetensors");
  REQUIRE(prepared.size() == 13);
  for (const Store::Entry& entry : prepared) {
    const auto& [name, pixels] = entry;
    CAPTURE(entry.name);
    const std::size_t dot = name.find('.');
    const ImagePreparation preparation =
        read_image_preparation(source_root() + "/tests/golden/data/vit/" + name.substr(0, dot));
    const std::string file = source_root() + "/tests/golden/data/vit/" + name.substr(dot + 1) + ".png";
    const Array found = image_array(read_image(file, 3, preparation.resize), preparation.numbers);
    REQUIRE(found.shape() == pixels.shape());
    const std::vector<double> expected = numbers(pixels), values = numbers(found);
    for (std::size_t i = 0; i < values.size(); ++i)  // up to the rounding to float32; a step of a byte is over 0.0039
      if (std::fabs(values[i] - expected[i]) > 1e-6 * std::max(1.0, std::fabs(expected[i])))
        FAIL("number " << i << " is " << values[i] << ", not " << expected[i]);
  }
}

TEST_CASE("ViT in a folder: sizes that the weights do not have, and attention that the definition does not have") {
  for (const auto& each :
       {std::tuple<const char*, nlohmann::json, const char*>{"image_size", 32, "embeddings.position_embeddings"},
        {"num_channels", 1, "embeddings.projection.weight"},
        {"patch_size", 4, "embeddings.position_embeddings"},
        {"num_attention_heads", 5, "heads must divide d_model"},
        {"id2label", {{"0", "cat"}}, "classifier.weight"},
        {"qkv_bias", false, "'qkv_bias' is false, but"},
        {"hidden_act", "quick_gelu", "'hidden_act' is \"quick_gelu\"; the definition supports"},
        {"patch_size", 0, "0"},
        {"image_size", "large", "cannot be 'large'"}}) {
    const auto& [key, value, error] = each;
    CAPTURE(std::get<0>(each));
    const Folder copy(vit_folder);
    changed_vit(copy, key, value);
    const auto play = [&] {
      opened_vit(Dtype::float32, copy.path()).play("logits", {{"images", vit_images(Dtype::float32)}});
    };
    CHECK_THROWS_WITH_AS(play(), doctest::Contains(error), Error);
  }
}
