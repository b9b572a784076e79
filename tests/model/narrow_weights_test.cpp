// Model::store_weights_as: which weights become bfloat16, float16 or int8, what they give, and their files.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <set>

#include "distance.hpp"
#include "folders.hpp"
#include "model/weights/stored_weights.hpp"
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
    const double apart = relative_distance(logits(model), before);
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
  CHECK_THROWS_WITH_AS(
      model.store_weights_as(Dtype::int32),
      "weights are stored as float32, bfloat16, float16, int8 or in blocks (Q8_0, Q4_0, Q4_K, Q5_K or Q6_K), not "
      "int32",
      DtypeError);
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

namespace {
/// Gives `wide` the numbers of the weights of `narrow`, and compares the logits of steps.
void compare_steps(Model& narrow, Model& wide, const std::function<void(const Array&, const Array&)>& compare) {
  for (const Store::Entry& entry : narrow.weights()) {
    Tape tape;
    Array weight = wide.weight(entry.name);
    weight.assign(evaluate(cast(narrow.weight(tape, entry.name), Dtype::float32)));
  }
  Predictor narrow_steps(narrow, "logits"), wide_steps(wide, "logits");
  narrow_steps.begin(1);
  wide_steps.begin(1);
  for (const std::int64_t token : {1, 5, 9, 2, 59}) {
    Array tokens(Dtype::int64, {1, 1});
    *tokens.as<std::int64_t>() = token;
    compare(Array(narrow_steps.step(tokens)), Array(wide_steps.step(tokens)));
  }
}
}  // namespace

TEST_CASE("decoding with halves is decoding with the same numbers as float32, bit for bit") {
  for (const Dtype dtype : {Dtype::bfloat16, Dtype::float16}) {
    Model narrow = small_gpt2(), wide = small_gpt2();
    narrow.store_weights_as(dtype);
    compare_steps(narrow, wide, [](const Array& first, const Array& second) {
      CHECK(std::memcmp(first.data(), second.data(), first.bytes()) == 0);
    });
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
    CHECK(relative_distance(logits(read), logits(model)) == 0);
    CHECK(hugging_face_warnings(path, gpt2).empty());
    Model plain = open_hugging_face(path, {}, gpt2);  // halves are widened, int8 stays
    CHECK(names_of_dtype(plain, Dtype::int8) == names_of_dtype(read, Dtype::int8));
    CHECK(relative_distance(logits(plain), logits(model)) < 1e-6);
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

namespace {
constexpr Dtype block_formats_stored[] = {Dtype::q8_0, Dtype::q4_0, Dtype::q4_k, Dtype::q5_k, Dtype::q6_k};

/// A GPT-2 whose sums are whole blocks of 256 numbers.
Model wide_gpt2(const ModelOptions& options = {}) {
  ModelOptions given = options;
  given.hyper = {{"n_layer", "1"}, {"n_embd", "256"}, {"n_head", "4"}, {"vocab_size", "60"}, {"n_positions", "16"}};
  given.seed = 3;
  return Model::load(gpt2, given);
}
}  // namespace

TEST_CASE("weights become blocks along the terms that products sum") {
  for (const Dtype dtype : block_formats_stored) {
    Model model = wide_gpt2();
    const Array before = logits(model);
    const Array weight(model.weights().at("h.0.mlp.c_fc.weight"));  // [256, 1024], summed over the first axis
    model.store_weights_as(dtype);
    CHECK(names_of_dtype(model, dtype).size() == 6);
    const Array& stored = model.weights().at("h.0.mlp.c_fc.weight");
    CHECK(stored.shape() == Shape{1024, 256});
    CHECK(model.orders().at("h.0.mlp.c_fc.weight") == Axes{1, 0});
    CHECK(model.orders().count("wte.weight") == 0);
    CHECK(model.weights().at("wte.weight").shape() == Shape{60, 256});
    Tape tape;
    const Array back = evaluate(model.weight(tape, "h.0.mlp.c_fc.weight"));
    const double bits = dtype == Dtype::q8_0 ? 8 : dtype == Dtype::q6_k ? 6 : dtype == Dtype::q5_k ? 5 : 4;
    CHECK(relative_distance(back, weight) < 1.8 * std::pow(2, -bits));
    CHECK(relative_distance(back, weight) > 0.05 * std::pow(2, -bits));
    const double apart = relative_distance(logits(model), before);
    CHECK(apart > 0);
    CHECK(apart < 4 * std::pow(2, -bits));
    CHECK(model.parameter_count() == wide_gpt2().parameter_count());
    // A model with the same numbers as floats gives the same logits.
    Model floats = wide_gpt2();
    for (const Store::Entry& entry : model.weights()) {
      Tape apart_tape;
      Array to = floats.weight(entry.name);
      to.assign(evaluate(model.weight(apart_tape, entry.name)));
    }
    CHECK(relative_distance(logits(model), logits(floats)) < 2e-6);
  }
}

TEST_CASE("a weight without whole blocks of 256 numbers is stored as Q8_0, without blocks of 32 as it is") {
  Model model = small_gpt2();  // sums of 32 numbers, and of 128
  model.store_weights_as(Dtype::q4_k);
  CHECK(names_of_dtype(model, Dtype::q4_k).empty());
  CHECK(names_of_dtype(model, Dtype::q8_0).size() == 10);
  ModelOptions options;
  options.hyper = {{"n_embd", "48"}, {"n_head", "4"}, {"n_layer", "1"}, {"vocab_size", "60"}, {"n_positions", "16"}};
  Model odd = Model::load(gpt2, options);
  odd.store_weights_as(Dtype::q8_0);
  CHECK(names_of_dtype(odd, Dtype::q8_0) == std::set<std::string>{"h.0.mlp.c_proj.weight"});  // 192 numbers
  Model kept = wide_gpt2();
  WeightDtypes mixed(Dtype::q6_k);
  mixed.put_first("*c_fc*", Dtype::float32);
  mixed.put_first("wte*", Dtype::q8_0);
  kept.store_weights_as(mixed);
  CHECK(names_of_dtype(kept, Dtype::q6_k).size() == 4);
  CHECK(names_of_dtype(kept, Dtype::q8_0) == std::set<std::string>{"wte.weight"});
}

TEST_CASE("weights in blocks become other storage, with their axes as in the definition") {
  Model model = wide_gpt2();
  model.store_weights_as(Dtype::q6_k);
  const Array before = logits(model);
  Model wide = wide_gpt2();
  for (const Dtype dtype : {Dtype::float32, Dtype::bfloat16, Dtype::int8, Dtype::q8_0}) {
    Model other = wide_gpt2();
    other.store_weights_as(Dtype::q6_k);
    other.store_weights_as(dtype);
    CHECK(names_of_dtype(other, Dtype::q6_k).empty());
    CHECK(names_of_dtype(other, dtype).size() >= 6);
    if (dtype != Dtype::q8_0) {
      CHECK(other.orders().empty());
      CHECK(other.weights().at("h.0.mlp.c_fc.weight").shape() == wide.weights().at("h.0.mlp.c_fc.weight").shape());
    }
    CHECK(relative_distance(logits(other), before) < (dtype == Dtype::float32 ? 1e-5 : 0.05));
  }
}

TEST_CASE("a weight that blocks cannot hold is an error") {
  for (const float number : {std::nanf(""), std::numeric_limits<float>::infinity(), -70000.0F}) {
    Model model = wide_gpt2();
    Array weight = model.weight("wte.weight");
    weight.as<float>()[5] = number;
    CHECK_THROWS_WITH_AS(model.store_weights_as(Dtype::q4_0),
                         "weight 'wte.weight' has NaN, infinity or numbers beyond 65504, and cannot be stored as Q4_0",
                         Error);
    CHECK(names_of_dtype(model, Dtype::q4_0).empty());
    const test::Folder folder;
    model.save_weights(folder / "weights");
    ModelOptions options;
    options.weights = Dtype::q4_0;
    Model stored = wide_gpt2(options);
    CHECK_THROWS_WITH_AS(stored.load_weights(folder / "weights"),
                         ("wte.weight in '" + folder / "weights" +
                          "' has numbers beyond the range of Q4_0, as which the weight is stored")
                             .c_str(),
                         FileError);
  }
}

TEST_CASE("after an error in a file of blocks, no weight has changed") {
  const test::Folder folder;
  Model blocks = wide_gpt2();
  blocks.store_weights_as(Dtype::q4_k);
  Store lacking;
  for (const Store::Entry& entry : blocks.weights())
    if (entry.name != "wte.weight") lacking.add(entry.name, Array(entry.value));
  save_arrays(folder / "lacking", lacking);
  Model model = wide_gpt2();
  const Array before = logits(model);
  const Array shared = model.weight("h.0.mlp.c_fc.weight");
  CHECK_THROWS_WITH_AS(model.load_weights(folder / "lacking"), doctest::Contains("missing: wte.weight"), FileError);
  CHECK(relative_distance(logits(model), before) == 0);
  CHECK(model.weight("h.0.mlp.c_fc.weight").data() == shared.data());
  model.store_weights_as(Dtype::bfloat16);
  CHECK_THROWS_WITH_AS(model.load_weights(folder / "lacking"), doctest::Contains("cannot become"), FileError);
}

TEST_CASE("a folder of floats is opened in blocks, and a folder of blocks as it is") {
  const test::Folder folder;
  Model model = wide_gpt2();
  save_hugging_face(model, folder / "floats");
  for (const Dtype dtype : block_formats_stored) {
    Model quantised = wide_gpt2();
    quantised.store_weights_as(dtype);
    ModelOptions options;
    options.weights = dtype;
    Model opened = open_hugging_face(folder / "floats", options, gpt2);
    CHECK(names_of_dtype(opened, dtype) == names_of_dtype(quantised, dtype));
    CHECK(relative_distance(logits(opened), logits(quantised)) == 0);
    const std::string path = folder / name_of(dtype);
    save_hugging_face(quantised, path);
    CHECK(stored_weights(path) == dtype);
    Model again = open_hugging_face(path, {}, gpt2);
    CHECK(relative_distance(logits(again), logits(quantised)) == 0);
    CHECK(hugging_face_warnings(path, gpt2).empty());
  }
}

TEST_CASE("decoding with blocks is decoding with the same numbers as float32") {
  for (const Dtype dtype : block_formats_stored) {
    Model narrow = wide_gpt2(), wide = wide_gpt2();
    narrow.store_weights_as(dtype);
    compare_steps(narrow, wide,
                  [](const Array& first, const Array& second) { CHECK(relative_distance(first, second) < 2e-6); });
  }
}

TEST_CASE("int8 gives the same numbers on one thread and on several") {
  Array weight(Dtype::float32, {7, 300, 40});
  for (std::int64_t i = 0; i < weight.count(); ++i)
    weight.as<float>()[i] = std::sin(0.1F * static_cast<float>(i)) * static_cast<float>(1 + i % 13);
  for (const Axes& channels : {Axes{0}, Axes{2}, Axes{0, 2}, Axes{1}}) {
    const model::Quantised made = model::as_int8("w", weight, channels);
    const Layout places = Layout::dense(made.scale.shape()).broadcast_to(weight.shape());
    std::vector<float> greatest(static_cast<std::size_t>(made.scale.count()));
    const auto place = [&](std::int64_t i) {
      return i / 12000 * places.strides[0] + i / 40 % 300 * places.strides[1] + i % 40 * places.strides[2];
    };
    for (std::int64_t i = 0; i < weight.count(); ++i)
      greatest[place(i)] = std::max(greatest[place(i)], std::abs(weight.as<float>()[i]));
    for (std::int64_t i = 0; i < made.scale.count(); ++i) REQUIRE(made.scale.as<float>()[i] == greatest[i] / 127);
    for (std::int64_t i = 0; i < weight.count(); ++i)
      REQUIRE(made.numbers.as<std::int8_t>()[i] == std::nearbyint(weight.as<float>()[i] / (greatest[place(i)] / 127)));
  }
}
