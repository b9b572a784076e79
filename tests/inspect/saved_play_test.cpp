#include <doctest/doctest.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "folders.hpp"
#include "xtape/grad.hpp"
#include "xtape/inspect.hpp"
#include "xtape/ops.hpp"
#include "xtape/safetensors.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;
using xtape::test::Folder;

namespace {
/// A play with a parameter, two inputs, a draw, and a gradient.
struct Example {
  Tape tape{Mode::train};
  Var x = tape.input("x", {2, 3}), h = tape.input("h", {3});
  Var w = tape.parameter("w", xt::xarray<float>{1, 2, 3});
  Var loss = sum(dropout(x * w + h, 0.5));
  Vars outputs{loss, grad(loss, {w})[0]};
  xt::xarray<float> x_values{{1, 2, 3}, {4, 5, 6}}, h_values{7, 8, 9};
  PlayerOptions options;
  Example() {
    options.seed = 3;
    options.precision = Precision::bf16x3;
    options.bits = Bits::fast;
  }
};

std::vector<Array> outputs_of(const RecordedPlay& play) {
  Player player(play.tape, play.outputs, play.options);
  std::vector<Feed> feeds;
  for (const ValueId input : play.tape.inputs())
    feeds.emplace_back(play.tape.var(input), *play.inputs.find(play.tape.var(input).node().name));
  player.play(feeds, play.step);
  std::vector<Array> outputs;
  for (const Var& output : play.outputs) outputs.emplace_back(player.view(output));
  return outputs;
}

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}
}  // namespace

TEST_CASE("a saved play gives the same bits: arrays, draws and precision are kept") {
  const Folder folder;
  Example example;
  Player player(example.tape, example.outputs, example.options);
  const std::vector<Feed> feeds{{example.x, example.x_values}, {example.h, example.h_values}};
  const RecordedPlay play = recorded_play(player, feeds, 17);
  save_play(play, {"loss", "grad.w"}, folder / "play");
  save_play(play, {"loss", "grad.w"}, folder / "play");  // replaces it
  CHECK(is_saved_play(folder / "play"));
  CHECK(is_saved_tape(folder / "play"));
  CHECK(!is_capsule(folder / "play"));
  const SavedPlay loaded = load_play(folder / "play");
  CHECK(loaded.outputs.names() == std::vector<std::string>{"loss", "grad.w"});
  CHECK(loaded.play.step == 17);
  CHECK(loaded.play.options.seed == 3);
  CHECK(loaded.play.options.precision == Precision::bf16x3);
  CHECK(loaded.play.options.bits == Bits::fast);
  player.play(feeds, 17);
  const std::vector<Array> again = outputs_of(loaded.play);
  for (std::size_t i = 0; i < 2; ++i) {
    const Array expected(player.view(example.outputs[i]));
    CHECK(std::memcmp(expected.data(), again[i].data(), expected.bytes()) == 0);
  }
  CHECK(explain_gradient(loaded.play, loaded.play.tape.var(example.w.id())).norm > 0);
  CHECK(!shadow(loaded.play).empty());
  CHECK_THROWS_WITH_AS(save_play(play, {"loss"}, folder / "other"), "save_play: got 1 names for 2 outputs", Error);
}

TEST_CASE("a saved play replaces nothing else, and damage is an error with the file") {
  const Folder folder;
  Example example;
  Player player(example.tape, example.outputs, example.options);
  const RecordedPlay play = recorded_play(player, {{example.x, example.x_values}, {example.h, example.h_values}}, 1);
  example.tape.save(folder / "tape", {});
  CHECK_THROWS_WITH_AS(save_play(play, {"a", "b"}, folder / "tape"),
                       doctest::Contains("exists and is not a saved play"), FileError);
  CHECK_THROWS_WITH_AS(load_play(folder / "tape"), doctest::Contains("is not a saved play"), FileError);
  save_play(play, {"a", "b"}, folder / "play");
  std::ofstream(folder / "play/notes.txt") << "mine";
  CHECK_THROWS_WITH_AS(save_play(play, {"a", "b"}, folder / "play"), doctest::Contains("also has 'notes.txt'"),
                       FileError);
  const std::string json = text_of(folder / "play/play.json");
  const auto damaged = [&](const std::string& from, const std::string& to, const std::string& message) {
    std::string text = json;
    text.replace(text.find(from), from.size(), to);
    std::ofstream(folder / "play/play.json") << text;
    CHECK_THROWS_WITH_AS(load_play(folder / "play"), doctest::Contains(message.c_str()), FileError);
    std::ofstream(folder / "play/play.json") << json;
  };
  damaged("\"seed\"", "\"seeds\"", "seed");
  damaged("xtape play", "xtape plan", "this is not a play");
  damaged("\"version\": 1", "\"version\": 2", "version");
  damaged("bf16x3", "bf17", "bf17");
  Store arrays = load_arrays(folder / "play/inputs.safetensors");
  Store other;
  other.add("x", arrays.at("x"));
  save_arrays(folder / "play/inputs.safetensors", other);
  CHECK_THROWS_WITH_AS(load_play(folder / "play"), doctest::Contains("does not hold 'h' as float32 (3,)"), FileError);
  other.add("h", Array(Dtype::float32, {4}));
  save_arrays(folder / "play/inputs.safetensors", other);
  CHECK_THROWS_WITH_AS(load_play(folder / "play"), doctest::Contains("does not hold 'h' as float32 (3,)"), FileError);
}
