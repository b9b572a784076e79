// Names of weights, and mappings in files of their own.
#include <doctest/doctest.h>

#include "small_folder.hpp"

namespace small_folder {

using doctest::Contains;

TEST_CASE("weights have other names in folders, there and back") {
  const Small small(least());
  const Model model = small.open();
  REQUIRE(model.weights().size() == 4);
  for (const auto& [name, number] : {std::pair{"layers.0.query.weight", 1.0F},
                                     {"layers.0.first.weight", 2.0F},
                                     {"layers.1.query.weight", 3.0F},
                                     {"layers.1.first.weight", 4.0F}}) {
    CHECK(model.weights().at(name).as<float>()[1] == number);
  }
  const Folder to;
  save_hugging_face(model, to.path());
  const Store written = load_arrays(to / "model.safetensors"), read = load_arrays(small.folder / "model.safetensors");
  CHECK(written.size() == read.size());
  for (const Store::Entry& entry : read) CHECK(written.at(entry.name).as<float>()[1] == entry.value.as<float>()[1]);
  std::filesystem::remove(small.folder / "model.safetensors");
  Store none;
  none.add("model.block.0.layer.w.weight", Array(Dtype::float32, {3}));
  save_arrays(small.folder / "model.safetensors", none);
  CHECK_THROWS_WITH_AS(small.open(), Contains("unexpected: model.block.0.layer.w.weight"), FileError);
}

TEST_CASE("names: every entry in turn, whole words, a star for the same in both") {
  model::HuggingFaceMapping mapping;
  mapping.names = {{"encoder.*", "encoder.block.*"}, {"a.*.b.*", "x.*.*"}, {"q", "query"}};
  CHECK(tensor_name(mapping, "encoder.3.q.weight") == "encoder.block.3.query.weight");
  CHECK(tensor_name(mapping, "encoder_norm.weight") == "encoder_norm.weight");
  CHECK(tensor_name(mapping, "z.a.1.b.2.qq") == "z.x.1.2.qq");
  CHECK(tensor_name(mapping, "encoder") == "encoder");
  CHECK(tensor_name(mapping, "q") == "query");
}

TEST_CASE("a mapping in a file of its own is found as used files are, and stands inside the one text") {
  const Small small(least());
  const Model model = small.open();
  const auto text = nlohmann::json::parse(model.definition_text());
  CHECK(text["hugging_face"] == nlohmann::json::parse(mapping_text));
  const Folder to;
  std::filesystem::remove_all(small.definitions / "of_folders");
  save_hugging_face(Model::parse(model.definition_text()), to.path());
  CHECK(std::filesystem::exists(to / "config.json"));
  CHECK_THROWS_WITH_AS(small.open(), Contains("cannot find 'of_folders/small.json'"), DefinitionError);
  // The same entry in its place.
  const std::string inside = small.definitions.write("inside.json", definition_text(mapping_text));
  CHECK(open_hugging_face(small.folder.path(), {}, inside).hyper().integer("width") == 3);
  // Mistakes are of the mapping's file.
  std::filesystem::create_directory(small.definitions / "of_folders");
  small.definitions.write("of_folders/small.json", R"({"model_type": "small", "architecture": "S", "hypr": {}})");
  CHECK_THROWS_WITH_AS(small.open(), Contains("of_folders/small.json, line 1"), DefinitionError);
  small.definitions.write(
      "of_folders/small.json",
      R"({"model_type": "small", "architecture": "S", "hyper": {}, "weights": {"names": {"a": "*"}}})");
  CHECK_THROWS_WITH_AS(small.open(), Contains("each star here needs a star in 'a'"), DefinitionError);
  small.definitions.write("of_folders/small.json", R"({"model_type": "small", "architecture": {}, "hyper": {}})");
  CHECK_THROWS_WITH_AS(small.open(), Contains("at least one architecture belongs here"), DefinitionError);
  small.definitions.write("of_folders/small.json", R"({"model_type": "small", "architecture": "S", "hyper": {"width":
    {"keys": "labels", "count": true, "values": {"null": 0}}}})");
  CHECK_THROWS_WITH_AS(small.open(), Contains("a count has no \"values\""), DefinitionError);
}

}  // namespace small_folder
