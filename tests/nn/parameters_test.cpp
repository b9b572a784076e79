// Parameters: made once for a store, found by other tapes, and their errors.
#include "xtape/parameters.hpp"

#include <doctest/doctest.h>

#include <filesystem>

#include "error_of.hpp"
#include "same_bits.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"
#include "xtape/safetensors.hpp"

using namespace xtape;
using test::error_of;

TEST_CASE("a parameter is made once, and drawn by the seed and its name alone") {
  Tape tape;
  const Parameters p(tape, 3);
  const Var w = p("w", {4, 5}, init::normal(0.1));
  CHECK(w.shape() == Shape{4, 5});
  CHECK(w.node().name == "w");
  CHECK(p("w", {4, 5}, init::ones()).id() == w.id());  // found: the initialiser has no effect
  p("b", {5}, 2);
  CHECK(p.store().names() == std::vector<std::string>{"w", "b"});
  CHECK(p.store().at("b")(4) == 2);
  CHECK(p.count() == 25);

  Array alone(Dtype::float32, {4, 5});
  initialise(alone, init::normal(0.1), 3, "w");
  CHECK(same_bits(alone, p.store().at("w")));
  Tape second;
  const Parameters other(second, 3);
  other("before", {7}, init::normal());
  other("w", {4, 5}, init::normal(0.1));
  CHECK(same_bits(alone, other.store().at("w")));
  Tape third;
  const Parameters seeded(third, 4);
  seeded("w", {4, 5}, init::normal(0.1));
  CHECK_FALSE(same_bits(alone, seeded.store().at("w")));
}

TEST_CASE("scopes give the names of files") {
  Tape tape;
  const Parameters p(tape, 1);
  const Parameters attn = p / "h" / 0 / "attn";
  CHECK(attn.prefix() == "h.0.attn.");
  CHECK(p.prefix().empty());
  const Var w = attn("w", {2}, init::ones());
  CHECK(w.node().name == "h.0.attn.w");
  CHECK(p.scope("h.0")("attn.w", {2}, init::zeros()).id() == w.id());
  CHECK(p.vars().names() == std::vector<std::string>{"h.0.attn.w"});
}

TEST_CASE("other tapes find the arrays, with the elements of now") {
  Tape tape;
  Parameters p(tape, 1);
  p("w", {2}, 1);
  p.store().at("w").as<float>()[1] = 5;
  Tape evaluation(Mode::eval);
  const Parameters q(evaluation, p.store());
  const Var found = q("w", {2}, init::zeros());
  CHECK(found.tape() == evaluation);
  Player player(evaluation, {found});
  player.play();
  CHECK(player.view(found)(1) == 5);
  p.store().at("w").as<float>()[1] = 6;
  player.play();
  CHECK(player.view(found)(1) == 6);

  const std::string path = std::filesystem::temp_directory_path() / "xtape_parameters_test.safetensors";
  save_arrays(path, p);
  Tape third;
  const Parameters loaded(third, load_arrays(path));
  CHECK(loaded("w", {2}, init::zeros()).node().storage(1) == 6);
  std::filesystem::remove(path);
}

TEST_CASE("a store of the caller's gets the parameters that it lacks, if there is a seed") {
  Store store;
  store.add("w", Array(Dtype::float64, {1}));
  Tape tape(Dtype::float64);
  const Parameters p(tape, store, 1);
  p("w", {1}, 3);
  p("v", {1}, 4);
  CHECK(store.at("w")(0) == 0);
  CHECK(store.at("v")(0) == 4);
  CHECK(store.at("v").dtype() == Dtype::float64);

  Tape other(Dtype::float64);
  const Parameters q(other, store);
  CHECK(error_of([&] { q("wv", {1}, 3); }).find("the store has no parameter 'wv'; did you mean 'w'?") !=
        std::string::npos);
  CHECK_THROWS_AS(q("u", {1}, 3), Error);
  CHECK(store.size() == 2);
}

TEST_CASE("parameters that start as arrays") {
  Tape tape;
  Array start(Dtype::float32, {2});
  start.as<float>()[1] = 8;
  Parameters p(tape, 1);
  const Var w = p("w", start);
  start.as<float>()[1] = 9;
  CHECK(p.store().at("w")(1) == 8);  // a copy
  CHECK(p("w", start).id() == w.id());
  CHECK(p("v", {2}, init::from(start)).node().storage(1) == 9);
  CHECK_THROWS_AS(p("u", {3}, init::from(start)), ShapeError);
  CHECK(!p.store().has("u"));
}

TEST_CASE("gradients by parameters have their names") {
  Tape tape(Dtype::float64);
  const Parameters p(tape, 1);
  const Var w = p("w", {3}, init::normal()), b = (p / "out")("b", {}, 0.5);
  const NamedVars d = grad(sum(square(w)) * b, p.vars());
  CHECK(d.names() == std::vector<std::string>{"w", "out.b"});
  Player player(tape, {d.at("w"), d.at("out.b"), w});
  player.play();
  for (int i = 0; i < 3; ++i) CHECK(player.view(d.at("w"))(i) == player.view(w)(i));  // 2 w b
}

TEST_CASE("statistics are assigned by update, and no gradient trains them") {
  Tape tape;
  Parameters p(tape, 1);
  const Parameters norm = p / "norm";
  const Var x = tape.input("x", {2});
  const Var mean = norm.statistic("mean", {2}, 1);
  CHECK(p.vars().empty());
  CHECK(p.count() == 0);
  norm.record_update("mean", mean + x);
  const Var second = norm.statistic("mean", {2}, 1);
  norm.record_update("mean", second + x);  // a second application continues from the first
  CHECK(p.updates().names() == std::vector<std::string>{"norm.mean"});
  Player player(tape, {p.updates()[0].value});
  player.play({{x, {1, 2}}});
  CHECK(p.store().at("norm.mean")(1) == 1);
  p.update(player);
  CHECK(p.store().at("norm.mean")(0) == 3);
  CHECK(p.store().at("norm.mean")(1) == 5);
  player.play({{x, {1, 2}}});
  p.update(player);
  CHECK(p.store().at("norm.mean")(1) == 9);
  CHECK(error_of([&] { norm.record_update("men", x); }).find("no statistic 'norm.men'; did you mean 'norm.mean'?") !=
        std::string::npos);
  CHECK_THROWS_AS(norm.record_update("mean", sum(x)), ShapeError);
  CHECK_THROWS_AS(norm.record_update("mean", cast(x, Dtype::float64)), DtypeError);
}

TEST_CASE("a step leaves a statistic unchanged that its loss depends on") {
  const auto loss_of = [](const Parameters& p, const Var& x) {
    return sum(square(p("w", {2}, 1) * (x - p.statistic("mean", {2}, 1))));
  };
  Tape tape;
  Parameters p(tape, 1);
  const Var loss = loss_of(p, tape.input("x", {2}));
  const auto check = [&](Step& step, double before) {
    CHECK(p.store().at("w")(0) != before);
    CHECK(p.store().at("mean").tensor<float>() == xt::xarray<float>{1, 1});
    CHECK(step.updates() == 1);
  };
  Step on_tape(loss, p, AdamW{0.1, 0.9, 0.999, 1e-8, 0.5, true});
  on_tape({{loss.tape().var({0, 0}), {3, 4}}});
  check(on_tape, 1);
  const double now = p.store().at("w")(0);
  Step of_function([&](Var x) { return loss_of({x.tape(), p}, x); }, p, {{"w", Sgd{0.1}}, {"*", AdamW{0.1}}});
  of_function({xt::xarray<float>{3, 4}});
  check(of_function, now);
}

TEST_CASE("statistics start as copies, and a name alone finds what is there") {
  Tape tape;
  Parameters p(tape, 1);
  p.statistic("mean", Array(xt::xarray<double>{1, 2, 3}));
  p("weight", {2}, 5);
  CHECK(p.statistic("mean").type() == ValueType{Dtype::float64, {3}});
  CHECK(p("weight").shape() == Shape{2});
  CHECK(evaluate(p.statistic("mean")).tensor<double>() == xt::xarray<double>{1, 2, 3});
  CHECK(p.vars().names() == std::vector<std::string>{"weight"});
  CHECK(error_of([&] { p("weigth"); }).find("no parameter 'weigth'; did you mean 'weight'? (a call with its shape") !=
        std::string::npos);
  CHECK(error_of([&] { p.statistic("meen"); }).find("did you mean 'mean'?") != std::string::npos);
  const Parameters found(tape, static_cast<const Store&>(p.store()));
  CHECK(error_of([&] { found("v"); }).find("(Parameters with a seed would make it)") != std::string::npos);
  Parameters none(tape, 1);
  CHECK(error_of([&] { Step(sum(p("weight")), none, Sgd{0.1}); }).find("there are no weights yet") !=
        std::string::npos);
}

TEST_CASE("errors of parameters name the line, and both types") {
  Tape tape;
  const Parameters p(tape, 1);
  p("w", {2, 3}, init::zeros());
  const int line = __LINE__ + 1;
  const std::string text = error_of([&] { p("w", {3, 2}, init::zeros()); });
  CHECK(text.find("line " + std::to_string(line)) != std::string::npos);
  CHECK(text.find("'w' is float32 (2, 3) in the store, but asked for as float32 (3, 2)") != std::string::npos);
  CHECK_THROWS_AS(p("", {2}, 0), Error);
  CHECK_THROWS_AS(p / "", Error);
  CHECK_THROWS_AS(p("w", {-1}, 0), ShapeError);
  CHECK_THROWS_AS(p("i", Array(Dtype::int64, {2})), DtypeError);
  CHECK_THROWS_AS(p("eye", {2}, init::identity()), ShapeError);
  CHECK(error_of([&] { p("z", {2}, Initialiser("glorot", {})); }).find("there is no initialiser 'glorot'") !=
        std::string::npos);
  CHECK(error_of([&] {
          p("z", {2}, Initialiser("normal", {{"sd", 1}}));
        }).find("normal has no setting 'sd'") != std::string::npos);
  CHECK(p.store().names() == std::vector<std::string>{"w"});
  Tape halved(Dtype::float64);
  CHECK_THROWS_AS(Parameters(halved, p.store())("w", {2, 3}, init::zeros()), DtypeError);
}
