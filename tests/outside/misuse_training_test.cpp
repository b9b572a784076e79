// Misuse of optimisers, trainers, recipes and runs.
#include "folders.hpp"
#include "misuse.hpp"

using namespace xtape;

namespace misuse::training {
namespace {
const std::string recipe = R"json({
  "xtape": 2, "name": "small", "definition": "small.json",
  "data": {"kind": "text", "text": "text.txt", "block_size": 4},
  "batch": {"size": 2}, "optimizer": {"kind": "sgd"}, "schedule": {"kind": "constant", "rate": 0.1}, "steps": 2
})json";

struct World {
  test::Folder folder;
  Model model = Model::parse(small_model);
  TextBatches batches{{0, 1, 2, 3, 4, 5, 6}, {1, 2, 3}, {.rows = 2, .block_size = 3}};
  Store weights = {{"w", Array(xt::xarray<float>{1, 2, 3})}};
  xt::xarray<float> three{1, 2, 3};
  Array integers{Dtype::int32, {3}};

  Trainer trainer(const TrainerOptions& options = {}) { return {model, batches, options}; }
  Recipe loaded() const {
    folder.write("small.json", small_model);
    folder.write("text.txt", "abcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabc");
    return Recipe::load(folder.write("recipe.json", recipe));
  }
  Run run() const { return Run::create(loaded(), folder / "run"); }
};

std::vector<Row> rows_of_optimizers(World& w) {
  const auto optimizer = [&w](const OptimizerOptions& options, int threads = 1) {
    return [&w, options, threads] { Optimizer(w.weights, options, threads); };
  };
  const auto updated = [&w](const std::vector<ArrayView>& gradients, double rate = 0.1, double scale = 1,
                            double clip = 0) {
    return [&w, gradients, rate, scale, clip] {
      const std::vector<ArrayView> own = gradients.empty() ? std::vector<ArrayView>{w.three} : gradients;
      const double norm = Optimizer(w.weights, {}, 1).update(own, rate, scale, clip);
      CHECK(std::isfinite(norm) == std::isfinite(scale));
    };
  };
  const auto stopping = [&w] {
    auto held = std::make_shared<EarlyStopping>(w.weights, 1);
    const EarlyStopping taken(std::move(*held));
    return held;
  };
  const auto step = [&w] {
    return std::make_shared<Step>([&w](Var x) { return sum(x * x.tape().parameter(w.weights, "w")); }, w.weights,
                                  Sgd{});
  };
  const auto moved_step = [step] {
    auto held = step();
    const Step taken(std::move(*held));
    return held;
  };
  using Kind = ScheduleOptions::Kind;
  const auto rate = [](const ScheduleOptions& options, std::int64_t step = 1) {
    return [=] { CHECK(std::isfinite(rate_at(options, step))); };
  };
  return {
      {"Optimizer::Optimizer", "an integer", "int8",
       [] {
         Optimizer({{"w", Array(Dtype::int8, {1})}}, {});
       }},
      {"Optimizer::Optimizer", "an empty array", "the array is empty",
       [] {
         Optimizer({{"w", Array()}}, {});
       }},
      {"Optimizer::Optimizer", "no weights", "", [] { CHECK(Optimizer({}, {}).update({}, 0.1) == 0); }},
      {"Optimizer::Optimizer", "NaN", "beta1", optimizer({.beta1 = NAN})},
      {"Optimizer::Optimizer", "no momentum", "momentum",
       optimizer({.kind = OptimizerOptions::Kind::sgd, .momentum = 1})},
      {"Optimizer::Optimizer", "negative threads", "", [=] { CHECK_THROWS_AS(optimizer({}, -1)(), Error); }},
      {"Optimizer::update", "moved", gone,
       [&w] {
         Optimizer o(w.weights, {});
         const Optimizer p(std::move(o));
         o.update({w.three}, 0.1);
       }},
      {"Optimizer::update", "too few", "got 2 gradients for 1", updated({ArrayView(), ArrayView()})},
      {"Optimizer::update", "another dtype", "is int32", updated({w.integers})},
      {"Optimizer::update", "empty", "", updated({ArrayView()})},
      {"Optimizer::update", "no rate", "the learning rate is not a finite number", updated({}, NAN)},
      {"Optimizer::update", "no scale", "", updated({}, 0.1, NAN)},
      {"Optimizer::update", "an infinite scale", "", updated({}, 0.1, HUGE_VAL)},
      {"Optimizer::update", "no clip", "clip must be at least 0", updated({}, 0.1, 1, NAN)},
      {"Optimizer::state", "moved", gone,
       [&w] {
         Optimizer o(w.weights, {});
         const Optimizer p(std::move(o));
         static_cast<void>(o.state());
       }},
      {"Optimizer::updates", "moved", gone,
       [&w] {
         Optimizer o(w.weights, {});
         const Optimizer p(std::move(o));
         static_cast<void>(o.updates());
       }},
      {"Optimizer::Optimizer", "no groups", "no group matches weight 'w'",
       [&w] { Optimizer(w.weights, std::vector<OptimizerGroup>()); }},
      {"Optimizer::Optimizer", "a group without weights", "no weight matches ''",
       [&w] {
         Optimizer(w.weights, {{"w", {}}, {"", {}}});
       }},
      {"Optimizer::Optimizer", "a rate that is not finite", "the rate of a group must be at least 0 and finite",
       optimizer({.rate = HUGE_VAL})},
      {"EarlyStopping::EarlyStopping", "an empty array", "'w' is empty",
       [] {
         EarlyStopping({{"w", Array()}}, 1);
       }},
      {"EarlyStopping::restore", "before an evaluation", "",
       [&w] {
         EarlyStopping(w.weights, 1).restore();
         CHECK(w.weights.at("w").as<float>()[0] == 1);
       }},
      {"EarlyStopping::restore", "moved", gone, [=] { stopping()->restore(); }},
      {"EarlyStopping::best", "moved", gone, [=] { static_cast<void>(stopping()->best()); }},
      {"EarlyStopping::state", "moved", gone, [=] { static_cast<void>(stopping()->state()); }},
      {"EarlyStopping::best_evaluation", "moved", gone, [=] { static_cast<void>(stopping()->best_evaluation()); }},
      {"Step::Step", "an empty var", "", [&w] { CHECK_THROWS_AS(Step(Var(), w.weights, AdamW{}), HandleError); }},
      {"Step::Step", "no results", "the objective has no result", [&w] { Step(Vars(), w.weights, AdamW{}); }},
      {"Step::Step", "no rate", "the rate of the schedule must be above 0",
       [&w] { Step([](Var x) { return x; }, w.weights, AdamW{}, {.schedule = {.rate = 0}}); }},
      {"Step::operator()", "another var", "",
       [=] {
         CHECK_THROWS_AS((*step())({{Var(), 1}}), Error);
       }},
      {"Step::operator()", "moved", gone, [=] { (*moved_step())({ArrayView()}); }},
      {"Step::updates", "moved", gone, [=] { static_cast<void>(moved_step()->updates()); }},
      {"Step::rate", "moved", gone, [=] { static_cast<void>(moved_step()->rate()); }},
      {"Step::norm", "moved", gone, [=] { static_cast<void>(moved_step()->norm()); }},
      {"Step::view", "moved", gone, [=] { static_cast<void>(moved_step()->view(0)); }},
      {"Step::view", "before a step", "there was no step yet", [=] { static_cast<void>(step()->view(0)); }},
      {"Step::player", "moved", gone, [=] { static_cast<void>(moved_step()->player()); }},
      {"Step::optimizer", "moved", gone, [=] { static_cast<void>(moved_step()->optimizer()); }},
      {"Step::state", "moved", gone, [=] { static_cast<void>(moved_step()->state()); }},
      {"rate_at", "no step", "steps count from 1", rate({}, 0)},
      {"rate_at", "the last step", "", rate({.kind = Kind::cosine, .steps = 1}, INT64_MAX)},
      {"rate_at", "no end", "steps must be at least 1", rate({.kind = Kind::linear})},
      {"rate_at", "a negative warm-up", "warmup must not be negative", rate({.warmup = -1})},
      {"rate_at", "no width", "width of at least 1", rate({.kind = Kind::noam, .warmup = 1, .width = 0})},
  };
}

std::vector<Row> rows_of_trainers(World& w) {
  const auto moved = [&w] {
    auto trainer = std::make_shared<Trainer>(w.trainer());
    const Trainer taken(std::move(*trainer));
    return trainer;
  };
  const auto made = [&w](const TrainerOptions& options) { return [&w, options] { w.trainer(options); }; };
  const auto fitted = [&w](const Trainer::FitOptions& options) { return [&w, options] { w.trainer().fit(options); }; };
  const auto run = [&w] {
    auto held = std::make_shared<Run>(w.run());
    const Run taken(std::move(*held));
    return held;
  };
  return {
      {"Trainer::Trainer", "no micro-batches", "1048576 micro-batches, not 0",
       made(with(&TrainerOptions::accumulate, 0))},
      {"Trainer::Trainer", "too many micro-batches", "1048576 micro-batches, not 1000000000000",
       made(with(&TrainerOptions::accumulate, 1000000000000))},
      {"Trainer::Trainer", "no shards", "65536 shards, not 0", made(with(&TrainerOptions::shards, 0))},
      {"Trainer::Trainer", "too many threads", "",
       [=] { CHECK_THROWS_AS(made(with(&TrainerOptions::threads, 1 << 30))(), Error); }},
      {"Trainer::Trainer", "negative threads", "",
       [=] { CHECK_THROWS_AS(made(with(&TrainerOptions::threads, -1))(), Error); }},
      {"Trainer::Trainer", "no clip", "clip", made(with(&TrainerOptions::clip, NAN))},
      {"Trainer::Trainer", "a negative clip", "clip", made(with(&TrainerOptions::clip, -1))},
      {"Trainer::Trainer", "no memory", "'memory'", made(with(&TrainerOptions::memory, 1))},
      {"Trainer::Trainer", "an unknown pattern", "'v'", made(with(&TrainerOptions::frozen, {"v"}))},
      {"Trainer::Trainer", "a schedule without end", "epochs",
       made(with(&TrainerOptions::schedule, {.kind = ScheduleOptions::Kind::linear, .epochs = 1}))},
      {"Trainer::step", "moved", gone, [=] { static_cast<void>(moved()->step()); }},
      {"Trainer::trained", "moved", gone, [=] { static_cast<void>(moved()->trained()); }},
      {"Trainer::without_gradient", "moved", gone, [=] { moved()->without_gradient(); }},
      {"Trainer::update", "moved", gone, [=] { moved()->update(); }},
      {"Trainer::update", "a schedule without end", "steps must be at least 1",
       [&w] { w.trainer(with(&TrainerOptions::schedule, {.kind = ScheduleOptions::Kind::linear})).update(); }},
      {"Trainer::next_play", "moved", gone, [=] { moved()->next_play(); }},
      {"Trainer::statistics", "moved", gone, [=] { moved()->statistics(); }},
      {"Trainer::watched", "moved", gone, [=] { moved()->watched({}); }},
      {"Trainer::watched", "unknown", "computes no 'p'", [&w] { w.trainer().watched({"p"}); }},
      {"Trainer::watched", "nothing", "", [&w] { CHECK(w.trainer().watched({}).empty()); }},
      {"Trainer::evaluate", "moved", gone, [=] { moved()->evaluate(); }},
      {"Trainer::is_training", "moved", gone, [=] { static_cast<void>(moved()->is_training()); }},
      {"Trainer::fit", "no end", "needs a number of steps or of epochs", fitted({})},
      {"Trainer::fit", "negative steps", "must not be negative", fitted({.steps = -1})},
      {"Trainer::fit", "negative epochs", "must not be negative", fitted({.epochs = -1})},
      {"Trainer::fit", "a negative interval", "must not be negative", fitted({.steps = 1, .evaluate_every = -1})},
      {"Trainer::fit", "no epochs", "has no epochs", fitted({.epochs = 1})},
      {"Trainer::fit", "a watched value that is unknown", "computes no 'p'",
       [&w] {
         w.trainer().fit({.steps = 1, .watch = {"p"}}, with(&Trainer::Callbacks::watched, [](auto, const auto&) {}));
       }},
      {"Trainer::fit", "moved", gone, [=] { moved()->fit({.steps = 1}); }},
      {"Trainer::epoch", "moved", gone, [=] { static_cast<void>(moved()->epoch()); }},
      {"Trainer::best_step", "moved", gone, [=] { static_cast<void>(moved()->best_step()); }},
      {"Trainer::evaluated_step", "moved", gone, [=] { static_cast<void>(moved()->evaluated_step()); }},
      {"Trainer::save", "moved", gone, [=] { moved()->save("never"); }},
      {"Trainer::save", "no such folder", "/nowhere", [&w] { w.trainer().save("/nowhere/at/all"); }},
      {"Trainer::load", "no such folder", "/nowhere", [&w] { w.trainer().load("/nowhere"); }},
      {"Trainer::load", "moved", gone, [=] { moved()->load("/nowhere"); }},
      {"Trainer::profile", "not asked for", "needs the trainer's option 'profile'", [&w] { w.trainer().profile(1); }},
      {"Trainer::profile", "no updates", "at least one update",
       [&w] { w.trainer(with(&TrainerOptions::profile, true)).profile(0); }},
      {"Trainer::plan", "moved", gone, [=] { static_cast<void>(moved()->plan()); }},
      {"Setting::parse", "no value", "key=value", [] { Setting::parse("steps"); }},
      {"Setting::parse", "empty", "key=value", [] { Setting::parse(""); }},
      {"CheckpointChoice::parse", "unknown", "a checkpoint must be last, best",
       [] { CheckpointChoice::parse("first"); }},
      {"CheckpointChoice::parse", "no number", "a checkpoint must be last, best",
       [] { CheckpointChoice::parse("average:99999999999999999999"); }},
      {"Recipe::load", "no such file", "/nowhere", [] { Recipe::load("/nowhere"); }},
      {"Recipe::load", "an empty setting", "",
       [&w] {
         w.loaded();
         CHECK_THROWS_AS(Recipe::load(w.folder / "recipe.json", {{"", ""}}), Error);
       }},
      {"Run::create", "an empty recipe", "", [&w] { CHECK_THROWS_AS(Run::create({}, w.folder / "run"), Error); }},
      {"Run::create", "within a file", "recipe.json", [&w] { Run::create(w.loaded(), w.folder / "recipe.json/run"); }},
      {"Run::create", "empty", "", [&w] { CHECK_THROWS_AS(Run::create(w.loaded(), ""), Error); }},
      {"Run::open", "no such folder", "/nowhere is not a run", [] { Run::open("/nowhere"); }},
      {"Run::open", "no such checkpoint", "",
       [&w] {
         w.run();
         CHECK_THROWS_AS(Run::open(w.folder / "run", {}, {CheckpointChoice::Kind::step, -1}), Error);
       }},
      {"Run::open", "an average of nothing", "",
       [&w] {
         w.run();
         CHECK_THROWS_AS(Run::open(w.folder / "run", {}, {CheckpointChoice::Kind::average, 0}), Error);
       }},
      {"Run::resume", "an average", "cannot continue from an average",
       [] {
         Run::resume("/nowhere", {}, {CheckpointChoice::Kind::average, 1});
       }},
      {"Run::directory", "moved", gone, [=] { static_cast<void>(run()->directory()); }},
      {"Run::recipe", "moved", gone, [=] { static_cast<void>(run()->recipe()); }},
      {"Run::model", "moved", gone, [=] { static_cast<void>(run()->model()); }},
      {"Run::tokenizer", "moved", gone, [=] { static_cast<void>(run()->tokenizer()); }},
      {"Run::source_tokenizer", "moved", gone, [=] { static_cast<void>(run()->source_tokenizer()); }},
      {"Run::labels", "moved", gone, [=] { static_cast<void>(run()->labels()); }},
      {"Run::batches", "moved", gone, [=] { static_cast<void>(run()->batches()); }},
      {"Run::columns", "moved", gone, [=] { static_cast<void>(run()->columns()); }},
      {"Run::end_token", "moved", gone, [=] { static_cast<void>(run()->end_token()); }},
      {"Run::end_tokens", "moved", gone, [=] { static_cast<void>(run()->end_tokens()); }},
      {"Run::prompt", "not in the vocabulary", "'x'", [&w] { w.run().prompt("x"); }},
      {"Run::prompt", "moved", gone, [=] { run()->prompt("a"); }},
      {"Run::trainer", "moved", gone, [=] { static_cast<void>(run()->trainer()); }},
      {"Run::train", "moved", gone, [=] { run()->train(); }},
      {"Run::verify", "no such folder", "/nowhere is not a run", [] { Run::verify("/nowhere"); }},
      {"Run::verify", "not trained", "has no ledger.jsonl",
       [&w] {
         w.run();
         Run::verify(w.folder / "run");
       }},
      {"Run::verify", "no such update", "has no update -1",
       [&w] {
         w.run().train();
         Run::verify(w.folder / "run", {.updates = {-1}});
       }},
      {"Run::evaluate", "moved", gone, [=] { run()->evaluate(); }},
      {"Run::evaluate", "no test split", "test", [&w] { w.run().evaluate(true); }},
      {"Run::evaluate", "no pairs", "is not sentence pairs", [&w] { w.run().evaluate({"a"}, {"b"}); }},
      {"Run::translate", "no pairs", "only logits(source, tokens) translates", [&w] { w.run().translate({"a"}, {}); }},
      {"Run::attention", "no function", "attention", [&w] { w.run().attention("a"); }},
      {"Run::save_hugging_face", "a folder below a file", "run/recipe.json",
       [&w] { w.run().save_hugging_face(w.folder / "run/recipe.json/hf"); }},
      {"Run::save_adapter", "no folder", "did not start from a folder",
       [&w] { w.run().save_adapter(w.folder / "adapter"); }},
      {"profile", "an empty recipe", "", [] { CHECK_THROWS_AS(profile(Recipe(), 1), Error); }},
      {"profile", "no updates", "at least one update", [&w] { profile(w.loaded(), 0); }},
      {"first_play", "an empty recipe", "", [] { CHECK_THROWS_AS(first_play(Recipe()), Error); }},
      {"evaluate", "a model that was moved", gone,
       [&w] {
         const Model taken(std::move(w.model));
         evaluate(w.model, w.batches);
       }},
      {"evaluate_text", "no text", "has no token to predict", [&w] { evaluate_text(w.model, {}, {}); }},
      {"evaluate_text", "no context", "at least 2 tokens",
       [&w] {
         evaluate_text(w.model, {1, 2}, {.context = 1});
       }},
      {"evaluate_text", "a huge context", "",
       [&w] {
         evaluate_text(w.model, {1, 2, 3}, {.context = INT64_MAX, .stride = INT64_MAX});
       }},
      {"evaluate_text", "no stride", "the stride of windows",
       [&w] {
         evaluate_text(w.model, {1, 2}, {.context = 2, .stride = 0});
       }},
      {"evaluate_text", "out of the vocabulary", "index 99",
       [&w] {
         evaluate_text(w.model, {1, 99, 2}, {});
       }},
      {"sampled_loss", "no batches", "sample at least one", [&w] { sampled_loss(w.model, w.batches, 0); }},
  };
}

std::vector<Row> rows_of_all(World& w) {
  std::vector<Row> all;
  for (const auto& rows_of : {rows_of_optimizers, rows_of_trainers})
    for (Row& row : rows_of(w)) all.push_back(std::move(row));
  return all;
}
}  // namespace

TEST_CASE("misuse of training is an Error, or works as the table says") {
  check_rows<World>(rows_of_all);
}

TEST_CASE("the table has every function of training that can be misused") {
  check_complete<World>(rows_of_all, {"optim.hpp", "step.hpp", "trainer.hpp", "recipe.hpp", "train.hpp"},
                        {"Objective::results", "Objective::function"}, 40);
}
}  // namespace misuse::training
