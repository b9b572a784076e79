// Model::store_weights_as: which weights become bfloat16, float16 or int8, what they give, and their files.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <set>

#include "folders.hpp"
#include "source_root.hpp"
#include "whole.hpp"
#include "xtape/hugging_face.hpp"
#include "xtape/xtape.hpp"

using namespace xtape;

namespace {
const std::string gpt2 = source_root() + "/models/gpt2.json";
constexpr Dtype narrow_dtypes[] = {Dtype::bfloat16, Dtype::float16, Dtype::int8};

Model small_gpt2(const ModelOptions& options = {}) {
  ModelOptions given = options;
  given.hyper = {{"n_layer", "2"}, {"n_embd", "32"}, {"n_head", "4"}, {"vocab_size", "60"}, {"n_positions", "16"}};
  given.seed = 3;
  return Model::load(gpt2, given);
}

Array logits(Model& model) {
  const xt::xarray<std::int64_t> tokens{{1, 5, 7, 59, 0}, {3, 2, 8, 4, 4}};
  return model.play("logits", {{"tokens", tokens}}).at("logits");
}

double distance(const Array& a, const Array& b) {
  double apart = 0, size = 0;
  for (std::int64_t i = 0; i < a.count(); ++i) {
    const double x = a.as<float>()[i], y = b.as<float>()[i];
    apart += (x - y) * (x - y);
    size += y * y;
  }
  return std::sqrt(apart / size);
}

std::set<std::string> names_of_dtype(const Model& model, Dtype dtype) {
  std::set<std::string> names;
  for (const Store::Entry& entry : model.weights())
    if (entry.value.dtype() == dtype) names.insert(entry.name);
  return names;
}
}  // namespace

TEST_CASE("the weights of products and look-ups are narrowed, the others are not") {
  for (const Dtype dtype : narrow_dtypes) {
    Model model = small_gpt2();
    const Array before = logits(model);
    const std::int64_t count = model.parameter_count();
    model.store_weights_as(dtype);
    const std::set<std::string> narrow = names_of_dtype(model, dtype);
    CHECK(narrow.size() == 10);  // four in each layer, the embedding that is also the projection, the positions
    CHECK(narrow.count("wte.weight") == 1);
    CHECK(narrow.count("h.1.attn.c_attn.weight") == 1);
    CHECK(narrow.count("ln_f.weight") == 0);
    CHECK(model.parameter_count() == count);
    const double apart = distance(logits(model), before);
    CHECK(apart > 0);
    CHECK(apart < 0.02);
  }
}

TEST_CASE("int8 has a scale for each output channel, and the largest number of each is 127") {
  Model model = small_gpt2();
  Array weight = model.weight("h.0.mlp.c_fc.weight");  // [32, 128]
  for (int i = 0; i < 32; ++i) weight.as<float>()[i * 128 + 7] = 0;
  const Array given(weight);
  model.store_weights_as(Dtype::int8);
  const Array &scale = model.weights().at("h.0.mlp.c_fc.weight.scale"),
              &stored = model.weights().at("h.0.mlp.c_fc.weight");
  REQUIRE(scale.shape() == Shape{1, 128});
  CHECK(model.weights().at("wte.weight.scale").shape() == Shape{60, 1});
  for (int j = 0; j < 128; ++j) {
    int most = 0;
    for (int i = 0; i < 32; ++i) {
      most = std::max(most, std::abs(int{stored.as<std::int8_t>()[i * 128 + j]}));
      const float back = static_cast<float>(stored.as<std::int8_t>()[i * 128 + j]) * scale.as<float>()[j];
      CHECK(std::abs(back - given.as<float>()[i * 128 + j]) <= 0.5001f * scale.as<float>()[j]);
    }
    CHECK(most == (j == 7 ? 0 : 127));
  }
}

TEST_CASE("narrow weights: errors") {
  Model model = small_gpt2();
  CHECK_THROWS_WITH_AS(model.store_weights_as(Dtype::int32),
                       "weights are stored as float32, bfloat16, float16 or int8, not int32", DtypeError);
  model.store_weights_as(Dtype::float32);
  Array weight = model.weight("wte.weight");
  weight.as<float>()[5] = std::nanf("");
  CHECK_THROWS_WITH_AS(model.store_weights_as(Dtype::int8),
                       "weight 'wte.weight' has NaN or infinity and cannot be stored as int8", Error);
  model.store_weights_as(Dtype::bfloat16);
  CHECK_THROWS_WITH_AS(model.store_weights_as(Dtype::int8), "the weights are stored as bfloat16 and cannot become int8",
                       DtypeError);
}

TEST_CASE("a weight beyond the range of float16 is not stored so") {
  Model model = small_gpt2();
  Array weight = model.weight("wte.weight");
  weight.as<float>()[5] = 65520;
  CHECK_THROWS_WITH_AS(model.store_weights_as(Dtype::float16),
                       "weight 'wte.weight' has numbers beyond the range of float16, 65504: store the weights as "
                       "bfloat16",
                       Error);
  CHECK(names_of_dtype(model, Dtype::float16).empty());
  const test::Folder folder;
  model.save_weights(folder / "large");
  weight.as<float>()[5] = 65519;
  model.save_weights(folder / "small");
  ModelOptions options;
  options.weights = Dtype::float16;
  Model stored = small_gpt2(options);
  const float before = stored.weights().at("wte.weight").as<float16>()[7];
  CHECK_THROWS_WITH_AS(stored.load_weights(folder / "large"),
                       ("wte.weight in '" + folder / "large" +
                        "' has numbers beyond the range of float16, as which the weight is stored")
                           .c_str(),
                       FileError);
  CHECK(float(stored.weights().at("wte.weight").as<float16>()[7]) == before);
  stored.load_weights(folder / "small");
  model.store_weights_as(Dtype::float16);
  for (const Model* each : {&model, &stored}) CHECK(float(each->weights().at("wte.weight").as<float16>()[5]) == 65504);
  // An infinity stays one, and hides no other number.
  Model endless = small_gpt2();
  Array numbers = endless.weight("wte.weight");
  numbers.as<float>()[5] = -std::numeric_limits<float>::infinity();
  numbers.as<float>()[6] = 1e9F;
  CHECK_THROWS_AS(endless.store_weights_as(Dtype::float16), Error);
  numbers.as<float>()[6] = 0;
  endless.store_weights_as(Dtype::float16);
  CHECK(endless.weights().at("wte.weight").as<float16>()[5] == -std::numeric_limits<float>::infinity());
}

TEST_CASE("a folder with both kinds of halves is read as float32, which holds all numbers") {
  const test::Folder folder;
  Model model = small_gpt2();
  model.store_weights_as(Dtype::float16);
  save_hugging_face(model, folder / "mixed");
  CHECK(stored_weights(folder / "mixed") == Dtype::float16);
  const std::string file = folder / "mixed/model.safetensors";
  Store store;
  for (const Store::Entry& entry : load_arrays(file)) {
    Tape tape;
    const bool brain = entry.name.find("wpe") != std::string::npos;
    store.add(entry.name, brain ? evaluate(cast(tape.constant(entry.value), Dtype::bfloat16)) : Array(entry.value));
  }
  save_arrays(file, store);
  CHECK(stored_weights(folder / "mixed") == Dtype::float32);
}

TEST_CASE("decoding with halves is decoding with the same numbers as float32, bit for bit") {
  for (const Dtype dtype : {Dtype::bfloat16, Dtype::float16}) {
    Model narrow = small_gpt2(), wide = small_gpt2();
    narrow.store_weights_as(dtype);
    for (const Store::Entry& entry : narrow.weights()) {
      Array weight = wide.weight(entry.name);
      Tape tape;
      weight.assign(evaluate(cast(tape.constant(entry.value), Dtype::float32)));
    }
    Predictor narrow_steps(narrow, "logits"), wide_steps(wide, "logits");
    narrow_steps.begin(1);
    wide_steps.begin(1);
    for (const std::int64_t token : {1, 5, 9, 2, 59}) {
      Array tokens(Dtype::int64, {1, 1});
      *tokens.as<std::int64_t>() = token;
      const Array first(narrow_steps.step(tokens)), second(wide_steps.step(tokens));
      CHECK(std::memcmp(first.data(), second.data(), first.bytes()) == 0);
    }
  }
}

TEST_CASE("narrow weights are written to model folders and read as they are") {
  const test::Folder folder;
  for (const Dtype dtype : narrow_dtypes) {
    Model model = small_gpt2();
    model.store_weights_as(dtype);
    const std::string path = folder / name_of(dtype);
    save_hugging_face(model, path);
    CHECK(stored_weights(path) == dtype);
    ModelOptions options;
    options.weights = dtype;
    Model read = open_hugging_face(path, options, gpt2);
    CHECK(names_of_dtype(read, dtype) == names_of_dtype(model, dtype));
    CHECK(distance(logits(read), logits(model)) == 0);
    CHECK(hugging_face_warnings(path, gpt2).empty());
    Model plain = open_hugging_face(path, {}, gpt2);  // halves are widened, int8 stays
    CHECK(names_of_dtype(plain, Dtype::int8) == names_of_dtype(read, Dtype::int8));
    CHECK(distance(logits(plain), logits(model)) < 1e-6);
    options.weights = dtype == Dtype::int8 ? Dtype::bfloat16 : Dtype::int8;
    if (is_half(dtype)) CHECK_THROWS_AS(open_hugging_face(path, options, gpt2), FileError);
  }
}

TEST_CASE("a decoded text is the same with and without caches, with narrow weights") {
  for (const Dtype dtype : narrow_dtypes) {
    Model model = small_gpt2();
    model.store_weights_as(dtype);
    const Tokens prompt{1, 5, 9};
    GenerateOptions options;
    options.tokens = 8;
    options.context = 16;
    options.sampling.temperature = 0;
    const Tokens cached = generate(model, prompt, options);
    CHECK(whole::generate(model, prompt, options) == cached);
  }
}
