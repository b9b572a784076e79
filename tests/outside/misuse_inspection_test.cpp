// Misuse of the functions that look into plays.
#include "folders.hpp"
#include "misuse.hpp"

using namespace xtape;

namespace misuse::inspection {
namespace {
struct World {
  test::Folder folder;
  xt::xarray<float> three{1, 2, 3};
  Tape tape, other;
  Var x, y, loss, foreign;

  World() {
    x = tape.input("x", {3});
    y = tanh(x * tape.parameter("p", Array(three)));
    loss = sum(y);
    foreign = other.input("z", {3});
    exp(foreign);
  }
  RecordedPlay play() const { return {tape, {loss}, {{"x", Array(three)}}, {}}; }
  RecordedPlay play_of(const std::function<void(RecordedPlay&)>& change) const {
    RecordedPlay made = play();
    change(made);
    return made;
  }
};

std::vector<Row> rows_of_inspection(World& w) {
  const auto looked = [&w](const std::function<void(RecordedPlay&)>& change,
                           const std::function<void(const RecordedPlay&)>& look) {
    return [&w, change, look] { look(w.play_of(change)); };
  };
  const auto failure = [](const RecordedPlay& play) { find_failure(play); };
  const auto shadowed = [](const RecordedPlay& play) { shadow(play); };
  const auto nothing = [](RecordedPlay& play) { play.outputs.clear(); };
  const auto foreign = [&w](RecordedPlay& play) { play.outputs = {w.foreign}; };
  const auto empty = [](RecordedPlay& play) { play.outputs = {Var()}; };
  const auto unfed = [](RecordedPlay& play) { play.inputs = Store(); };
  const auto short_input = [](RecordedPlay& play) { play.inputs = {{"x", Array(Dtype::float32, {1})}}; };
  const auto empty_input = [](RecordedPlay& play) { play.inputs = {{"x", Array()}}; };
  const auto player = [&w] { return Player(w.tape, {w.y}); };
  return {
      {"recorded_play", "moved", gone,
       [=] {
         Player p = player();
         const Player q(std::move(p));
         recorded_play(p, {});
       }},
      {"recorded_play", "foreign", "another tape",
       [=, &w] {
         Player p = player();
         recorded_play(p, {{w.foreign, w.three}});
       }},
      {"recorded_play", "empty", "an empty var",
       [=, &w] {
         Player p = player();
         recorded_play(p, {{Var(), w.three}});
       }},
      {"recorded_play", "null", "fed with",
       [=, &w] {
         Player p = player();
         recorded_play(p, {{w.x, ArrayView()}});
       }},
      {"recorded_play", "twice", "'x'",
       [=, &w] {
         Player p = player();
         recorded_play(p, {{w.x, w.three}, {w.x, w.three}});
       }},
      {"recorded_call", "too few arguments", "takes 1 arguments, not 0",
       [=] {
         Player p = player();
         recorded_call(p, {});
       }},
      {"recorded_call", "another type", "fed with",
       [=] {
         Player p = player();
         recorded_call(p, {2});
       }},
      {"recorded_play", "an empty capsule", "", [] { CHECK(recorded_play(Capsule()).outputs.empty()); }},
      {"save_play", "no names", "got 0 names for 1 outputs", [&w] { save_play(w.play(), {}, w.folder / "p"); }},
      {"save_play", "a name twice", "'a'",
       [=, &w] {
         save_play(w.play_of([&](RecordedPlay& p) { p.outputs = {w.y, w.y}; }), {"a", "a"}, w.folder / "p");
       }},
      {"save_play", "foreign", "another tape", [=, &w] { save_play(w.play_of(foreign), {"a"}, w.folder / "p"); }},
      {"save_play", "empty", "an empty var", [=, &w] { save_play(w.play_of(empty), {"a"}, w.folder / "p"); }},
      {"save_play", "an empty input", "array 'x' is empty",
       [=, &w] { save_play(w.play_of(empty_input), {"a"}, w.folder / "p"); }},
      {"load_play", "no such folder", "/nowhere", [] { load_play("/nowhere"); }},
      {"is_saved_play", "empty", "", [] { CHECK(!is_saved_play("")); }},
      {"range_of", "empty", "a view without memory", [] { range_of(ArrayView()); }},
      {"Capsule::save", "empty", "", [&w] { Capsule().save(w.folder / "c"); }},
      {"Capsule::load", "no such folder", "/nowhere", [] { Capsule::load("/nowhere"); }},
      {"is_capsule", "empty", "", [] { CHECK(!is_capsule("")); }},
      {"find_failure", "nothing to play", "at least one output", looked(nothing, failure)},
      {"find_failure", "foreign", "must belong to its tape", looked(foreign, failure)},
      {"find_failure", "empty", "an empty var", looked(empty, failure)},
      {"find_failure", "no input", "input 'x'", looked(unfed, failure)},
      {"find_failure", "a short input", "input 'x'", looked(short_input, failure)},
      {"find_failure", "an empty input", "input 'x'", looked(empty_input, failure)},
      {"replay", "empty", "", [] { CHECK(replay(Capsule()).outputs.empty()); }},
      {"replay", "negative threads", "", [] { CHECK(replay(Capsule(), {.threads = -1}).fails); }},
      {"shadow", "nothing to play", "at least one output", looked(nothing, shadowed)},
      {"shadow", "foreign", "must belong to its tape", looked(foreign, shadowed)},
      {"shadow", "no input", "input 'x'", looked(unfed, shadowed)},
      {"shadow", "a short input", "input 'x'", looked(short_input, shadowed)},
      {"shadow", "a rounded array of another shape", "'p'",
       [&w] {
         shadow(w.play(), {{"p", Array(Dtype::float32, {1})}});
       }},
      {"shadow", "a rounded array of an unknown name", "",
       [&w] {
         shadow(w.play(), {{"q", Array(Dtype::float32, {3})}});
       }},
      {"ranked", "NaN", "", [] { CHECK(ranked({NodeError()}, NAN).empty()); }},
      {"explain_gradient", "foreign", "another tape", [&w] { explain_gradient(w.play(), w.foreign); }},
      {"explain_gradient", "empty", "an empty var", [&w] { explain_gradient(w.play(), Var()); }},
      {"explain_gradient", "nothing to play", "a gradient needs an output",
       [=, &w] { explain_gradient(w.play_of(nothing), w.x); }},
      {"explain_gradient", "a foreign output", "another tape", [=, &w] { explain_gradient(w.play_of(foreign), w.x); }},
      {"explain_gradient", "no scalar", "scalar",
       [&w] { explain_gradient(w.play_of([&](RecordedPlay& p) { p.outputs = {w.y}; }), w.x); }},
      {"explain_gradient", "a short input", "input 'x'", [=, &w] { explain_gradient(w.play_of(short_input), w.x); }},
      {"parameters_without_gradient", "nothing to play", "a gradient needs an output",
       looked(nothing, [](const RecordedPlay& p) { parameters_without_gradient(p); })},
      {"parameters_without_gradient", "foreign", "another tape",
       looked(foreign, [](const RecordedPlay& p) { parameters_without_gradient(p); })},
      {"parameters_with_zero_gradient", "nothing to play", "a gradient needs an output",
       looked(nothing, [](const RecordedPlay& p) { parameters_with_zero_gradient(p); })},
      {"parameters_with_zero_gradient", "no input", "input 'x'",
       looked(unfed, [](const RecordedPlay& p) { parameters_with_zero_gradient(p); })},
      {"compare", "nothing", "", [&w] { CHECK(compare(w.play(), {}, {}).matched.empty()); }},
      {"compare", "an empty array", "the array is empty",
       [&w] {
         compare(w.play(), {}, {{"p", Array()}});
       }},
      {"compare", "foreign", "another tape",
       [&w] {
         compare(w.play(), {{"a", w.foreign}}, {{"a", Array(w.three)}});
       }},
      {"compare", "an empty var", "an empty var",
       [&w] {
         compare(w.play(), {{"a", Var()}}, {{"a", Array(w.three)}});
       }},
      {"compare", "no input", "input 'x'",
       [=, &w] {
         compare(w.play_of(unfed), {{"y", w.y}}, {{"y", Array(w.three)}});
       }},
      {"compare", "NaN", "",
       [&w] {
         CHECK(compare(w.play(), {}, {{"p", Array(xt::xarray<float>{7, 7, 7})}}, NAN).matched.empty());
       }},
      {"in_float64", "empty", "the array is empty", [] { in_float64(Array()); }},
      {"in_float64", "foreign", "another tape", [&w] { in_float64(w.tape, {w.foreign}); }},
      {"in_float64", "an empty var", "an empty var", [&w] { in_float64(w.tape, {Var()}); }},
  };
}
}  // namespace

TEST_CASE("misuse of inspection is an Error, or works as the table says") {
  check_rows<World>(rows_of_inspection);
}

TEST_CASE("the table has every function of inspection that can be misused") {
  check_complete<World>(rows_of_inspection, {"inspect.hpp"},
                        {"Range::finite", "Range::all_finite", "Range::magnitude", "to_string", "NodeError::added"},
                        20);
}
}  // namespace misuse::inspection
