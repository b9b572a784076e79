// Misuse of arrays, tapes, vars, players and ops.
#include "misuse_arrays.hpp"

using namespace xtape;

namespace misuse::tapes {
namespace {
std::vector<Row> rows_of_tapes(World& w) {
  return {
      {"Tape::input", "moved", "", [&w] { moved_from(w.tape.blank()).input("a", {1}); }},
      {"Tape::size", "moved", "", [&w] { CHECK(moved_from(w.tape).size() == w.tape.size()); }},
      {"Tape::inputs", "moved", "", [&w] { CHECK(moved_from(w.tape).inputs().size() == 1); }},
      {"Tape::input", "negative size", "must not be negative", [&w] { w.tape.input("b", {-1}); }},
      {"Tape::input", "a name twice", "already has an input named 'x'", [&w] { w.tape.input("x", {1}); }},
      {"Tape::parameter", "null", "a view without memory", [&w] { w.tape.parameter("w", w.null); }},
      {"Tape::parameter", "empty", "the array is empty", [&w] { w.tape.parameter("w", Array()); }},
      {"Tape::parameter", "unknown", "'w'", [&w] { w.tape.parameter(Store(), "w"); }},
      {"Tape::constant", "null", "a view without memory", [&w] { w.tape.constant(w.null); }},
      {"Tape::constant", "empty", "a view without memory", [&w] { w.tape.constant(ArrayView()); }},
      {"Tape::set_default_dtype", "an integer", "float32 or float64", [&w] { w.tape.set_default_dtype(Dtype::int8); }},
      {"Tape::node", "out of range", "the tape has no node 2", [&w] { w.tape.node(2); }},
      {"Tape::type", "negative", "the tape has no node -1",
       [&w] {
         w.tape.type({-1, 0});
       }},
      {"Tape::type", "no such output", "has no output 1",
       [&w] {
         w.tape.type({1, 1});
       }},
      {"Tape::var", "out of range", "the tape has no node 2",
       [&w] {
         w.tape.var({2, 0});
       }},
      {"Tape::var", "negative", "has no output -1",
       [&w] {
         w.tape.var({1, -1});
       }},
      {"Tape::set_past", "another mode", "mode predict", [&w] { w.tape.set_past(w.x, w.x, 1); }},
      {"Tape::set_past", "foreign", "must be of this tape", [&w] { Tape(Mode::predict).set_past(w.x, w.x, 1); }},
      {"Tape::past_of", "foreign", "of another tape", [&w] { w.tape.past_of(w.foreign); }},
      {"Tape::past_of", "empty", "an empty var", [&w] { w.tape.past_of(Var()); }},
      {"Tape::add_state", "foreign", "of another tape", [&w] { w.tape.add_state(w.x, w.foreign); }},
      {"Tape::add_state", "no input", "begins at an input", [&w] { w.tape.add_state(w.y, w.y); }},
      {"Tape::in_scope", "null", "the scope is null", [&w] { const auto guard = w.tape.in_scope(nullptr, 1); }},
      {"Tape::in_site", "no scope", "",
       [&w] {
         const auto guard = w.tape.in_site(Site());
         CHECK(sum(w.x).node().site.scope != nullptr);
       }},
      {"Tape::in_call", "null", "", [&w] { const auto guard = w.tape.in_call(nullptr, {}); }},
      {"Tape::save", "foreign", "",
       [&w] {
         CHECK_THROWS_AS(w.tape.save("never", {{"z", w.foreign}}), HandleError);
       }},
      {"Attributes::get", "unknown", "'axis'", [] { Attributes().get<bool>("axis"); }},
      {"Attributes::number", "unknown", "'axis'", [] { Attributes().number("axis"); }},
      {"mode_named", "unknown", "predict", [] { mode_named("no"); }},
      {"is_saved_tape", "empty", "", [] { CHECK(!is_saved_tape("")); }},
      {"memory_curve", "foreign", "", [&w] { CHECK_THROWS_AS(memory_curve(w.tape, {w.foreign}), HandleError); }},
      {"Tape::load", "no such folder", "", [] { CHECK_THROWS_AS(Tape::load("/nowhere/at/all"), FileError); }},
      {"Tape::append", "no op", "has no op", [&w] { w.tape.append(Node()); }},
      {"Tape::append", "no such node", "nodes that precede it",
       [&w] {
         w.tape.append(node_of(*w.y.node().op, {{9, 0}}, {{Dtype::float32, {3}}}));
       }},
      {"Tape::append", "no such output", "has no output 4",
       [&w] {
         w.tape.append(node_of(*w.y.node().op, {{0, 4}}, {{Dtype::float32, {3}}}));
       }},
      {"Tape::append", "no operand", "tanh: takes (x), got 0 operands",
       [&w] {
         w.tape.append(node_of(*w.y.node().op, {}, {{Dtype::float32, {3}}}));
       }},
      {"Tape::append", "a negative size", "must not be negative",
       [&w] {
         w.tape.append(node_of(*w.y.node().op, {{0, 0}}, {{Dtype::float32, {-3}}}));
       }},
      {"Tape::append", "a constant without array", "the array is empty",
       [&w] {
         w.tape.append(node_of(constant_op(), {}, {{Dtype::float32, {3}}}));
       }},
      {"Tape::append", "an input with an operand", "one output and no inputs",
       [&w] {
         w.tape.append(node_of(input_op(), {{0, 0}}, {{Dtype::float32, {3}}}));
       }},
      {"Tape::truncate", "out of range", "", [&w] { w.tape.truncate(1000); }},
      {"Tape::enclose", "out of range", "the tape has no node 1000", [&w] { w.tape.enclose(1000, {w.y}); }},
      {"Tape::enclose", "foreign", "of another tape", [&w] { w.tape.enclose(1, {w.foreign}); }},
      {"Tape::enclose", "empty", "an empty var", [&w] { w.tape.enclose(1, {Var()}); }},
      {"Tape::set_results", "out of range", "the tape has no node 7",
       [&w] {
         w.tape.set_results({{7, 0}});
       }},
      {"inline_body", "itself", "cannot be recorded on itself", [&w] { inline_body(w.tape, w.tape, {w.x}); }},
      {"inline_body", "too few", "has 1 inputs, got 0", [&w] { inline_body(w.tape, w.other, {}); }},
      {"inline_body", "foreign", "of another tape", [&w] { inline_body(w.tape, w.other, {w.foreign}); }},
      {"inline_body", "another type", "input 0 of the body is float32 (3,), got float32 ()",
       [&w] { inline_body(w.tape, w.other, {sum(w.x)}); }},
      {"Var::type", "empty", "an empty var", [] { static_cast<void>(Var().type()); }},
      {"Var::node", "empty", "an empty var", [] { static_cast<void>(Var().node()); }},
      {"Var::id", "moved", "", [&w] { CHECK(moved_from(w.x).id() == w.x.id()); }},
      {"Var::tape", "stale", "its tape is gone",
       [] {
         Var stale;
         stale = Tape().input("x", {1});
         stale.tape();
       }},
      {"Var::at", "out of range", "the index 3 is outside axis 0", [&w] { w.x.at(3); }},
      {"Var::at", "a null text", "the text of an index is null", [&w] { w.x.at(static_cast<const char*>(nullptr)); }},
      {"Var::at", "empty", "an empty var", [] { Var().at(0); }},
      {"Var::size", "out of range", "axis 1 is out of range", [&w] { w.x.size(1); }},
      {"apply", "foreign", "different tapes", [&w] { w.x + w.foreign; }},
      {"apply", "empty", "an empty var", [&w] { w.x + Var(); }},
      {"concat", "no operand", "concat: at least one operand is needed", [] { concat({}, 0); }},
      {"apply", "a source", "is a source", [&w] { apply(w.tape, input_op(), {}); }},
      {"record_call", "a source", "is a source", [&w] { record_call(w.tape, constant_op(), {}, {}); }},
      {"record_call", "foreign", "of another tape", [&w] { record_call(w.tape, *w.y.node().op, {w.foreign}, {}); }},
      {"record_call", "no operand", "got 0 operands", [&w] { record_call(w.tape, *w.y.node().op, {}, {}); }},
      {"checkpoint", "empty", "the function is empty", [&w] { checkpoint({}, {w.x}); }},
      {"checkpoint", "no input", "at least one input", [] { checkpoint([](const Vars& v) { return v; }, {}); }},
      {"scan", "empty", "the cell is empty", [&w] { scan({}, {w.x}, {}); }},
      {"while_loop", "empty", "the condition or the body is empty", [&w] { while_loop({}, {}, {w.x}, 1); }},
      {"cond", "empty", "an empty var",
       [&w] {
         const auto same = [](const Vars& v) { return v; };
         cond(Var(), same, same, {w.x});
       }},
      {"grad", "no output", "at least one output", [&w] { grad(Vars{}, {w.x}); }},
      {"grad", "foreign", "of another tape", [&w] { grad(sum(w.y), {w.foreign}); }},
      {"grad", "empty", "an empty var", [&w] { grad(sum(w.y), {Var()}); }},
      {"grad", "an array", "must have one element", [&w] { grad(w.y, {w.x}); }},
      {"grad", "unused", "no gradient reaches input 0", [&w] { grad(sum(w.x), {w.y}); }},
      {"gradcheck", "empty", "the function is empty", [] { gradcheck({}, std::vector<ArrayView>{}); }},
      {"gradcheck", "step 0", "the step must be above 0", [] { gradcheck({}, std::vector<ArrayView>{}, {.step = 0}); }},
      {"gradcheck", "tolerance NaN", "the tolerance must be at least 0",
       [] { gradcheck({}, std::vector<ArrayView>{}, {.tolerance = std::nan("")}); }},
  };
}

std::vector<Row> rows_of_players(World& w) {
  static const Op no_kernel = empty_op(false), no_tile = empty_op(true);
  const auto moved = [&w] {
    auto player = std::make_shared<Player>(w.player());
    Player taken = std::move(*player);
    return player;
  };
  return {
      {"Player::Player", "nothing to play", "", [&w] { CHECK_THROWS_AS(Player(w.tape, {}), Error); }},
      {"Player::Player", "foreign", "", [&w] { CHECK_THROWS_AS(Player(w.tape, {w.foreign}), HandleError); }},
      {"Player::Player", "empty", "an empty var", [&w] { Player(w.tape, {Var()}); }},
      {"Player::Player", "an empty kernel", "no_kernel: its lowering gives a kernel without a function",
       [&w] { Player(w.tape, apply(no_kernel, {w.x})); }},
      {"Player::Player", "an empty tile function", "no_tile: its lowering gives an empty tile function",
       [&w] { Player(w.tape, apply(no_tile, {w.x})); }},
      {"Player::Player", "a kernel that prepares without fixed inputs",
       "changed: its lowering gives a kernel that prepares",
       [&w] {
         static const Op prepares = changed_op([](Kernel& kernel) { kernel.prepare = kernel.run; });
         Player(w.tape, apply(prepares, {w.x}));
       }},
      {"Player::Player", "scratch beyond all memory",
       "changed: its lowering gives a kernel that needs 18446744073709551615",
       [&w] {
         static const Op greedy = changed_op([](Kernel& kernel) { kernel.scratch_bytes = SIZE_MAX; });
         Player(w.tape, apply(greedy, {w.x}));
       }},
      {"Player::Player", "prepared data beyond all memory", "changed: its lowering gives a kernel that needs",
       [&w] {
         static const Op greedy = changed_op([](Kernel& kernel) { kernel.prepared_bytes = SIZE_MAX; });
         Player(w.tape, apply(greedy, {w.x}));
       }},
      {"Player::Player", "two carries in one memory", "is also that of",
       [&w] {
         const Var a = w.tape.input("a", {3}), b = w.tape.input("b", {3});
         PlayerOptions options;
         options.carries = {{a, a + 1, w.three}, {b, b * a, w.three}};
         Player(w.tape, {}, options);
       }},
      {"compile", "nothing to play", "at least one output", [&w] { compile(w.tape, {}); }},
      {"compile", "foreign", "", [&w] { CHECK_THROWS_AS(compile(w.tape, {w.foreign}), HandleError); }},
      {"compile", "a tape that has ended", "",
       [] {
         std::optional<Player> player;
         Var y;
         {
           Tape tape;
           y = zeros(tape, {2}) + 1;
           player.emplace(compile(tape, {y}));
         }
         player->play();
         CHECK(player->view(y)(1) == 1);
       }},
      {"Player::play", "moved", gone, [=] { moved()->play(); }},
      {"Player::play", "null", "the feeds are null", [&w] { w.player().play(nullptr, 1, 0); }},
      {"Player::play", "null view", "a view without memory",
       [&w] {
         w.player().play({{w.x, w.null}});
       }},
      {"Player::play", "foreign", "belongs to another tape",
       [&w] {
         w.player().play({{w.foreign, w.values}});
       }},
      {"Player::play", "empty", "an empty var",
       [&w] {
         w.player().play({{Var(), w.values}});
       }},
      {"Player::play", "no input", "only inputs can be fed",
       [&w] {
         w.player().play({{w.y, w.values}});
       }},
      {"Player::play", "no feed", "is not fed", [&w] { w.player().play(); }},
      {"Player::step", "moved", gone, [=] { static_cast<void>(moved()->step()); }},
      {"Player::set_step", "moved", gone, [=] { moved()->set_step(1); }},
      {"Player::final_steps", "moved", gone, [=] { moved()->final_steps({w.y}); }},
      {"Player::final_steps", "foreign", "another tape", [&w] { w.player().final_steps({w.foreign}); }},
      {"Player::move_outputs", "moved", gone, [=, &w] { moved()->move_outputs({w.y}, {w.three}); }},
      {"Player::move_outputs", "empty", "is empty",
       [&w] {
         const Var total = sum(w.y);
         Player(w.tape, {total}).move_outputs({total}, {Array()});
       }},
      {"Player::move_outputs", "twice", "output 1 is given twice",
       [&w] {
         w.player().move_outputs({w.y, w.y}, {w.three, w.three.clone()});
       }},
      {"Player::move_outputs", "two in one memory", "is also that of",
       [&w] {
         const Var z = exp(w.x);
         Player(w.tape, {w.y, z}).move_outputs({w.y, z}, {w.three, w.three});
       }},
      {"Player::move_outputs", "the memory of a parameter", "is also that of parameter 'p'",
       [&w] {
         const Var z = exp(w.tape.parameter("p", w.three));
         Player(w.tape, {z}).move_outputs({z}, {w.three});
       }},
      {"Player::view", "moved", gone, [=] { moved()->view(w.y); }},
      {"Player::view", "foreign", "another tape", [&w] { w.played()->view(w.foreign); }},
      {"Player::view", "empty", "an empty var", [&w] { w.played()->view(Var()); }},
      {"Player::view", "before a play", "has not played yet", [&w] { w.player().view(w.y); }},
      {"Player::value", "moved", gone, [=] { moved()->value<float>(w.y); }},
      {"Player::tensor", "moved", gone, [=] { moved()->tensor<float>(w.y); }},
      {"Player::tensor", "another dtype", "holds float32, not float64", [&w] { w.played()->tensor<double>(w.y); }},
      {"Player::scalar", "an array", "not one element", [&w] { w.played()->scalar(w.y); }},
      {"Player::carried", "moved", gone, [=] { moved()->carried(w.x); }},
      {"Player::carried", "foreign", "another tape", [&w] { w.player().carried(w.foreign); }},
      {"Player::carried", "not carried", "is not the input of a carry", [&w] { w.player().carried(w.x); }},
      {"Player::plan", "moved", gone, [=] { moved()->plan(); }},
      {"Player::executable", "moved", gone, [=] { moved()->executable(); }},
      {"Player::seconds", "moved", gone, [=] { moved()->seconds(); }},
      {"Player::measured", "moved", gone, [=] { static_cast<void>(moved()->measured()); }},
      {"Player::forget_seconds", "moved", gone, [=] { moved()->forget_seconds(); }},
      {"Player::threads", "moved", gone, [=] { static_cast<void>(moved()->threads()); }},
      {"Player::digests", "moved", gone, [=] { moved()->digests(); }},
      {"Player::digests", "without the option", "without PlayerOptions::digests", [&w] { w.played()->digests(); }},
      {"Player::tape", "moved", gone, [=] { moved()->tape(); }},
      {"Player::outputs", "moved", gone, [=] { moved()->outputs(); }},
      {"Player::options", "moved", gone, [=] { moved()->options(); }},
      {"evaluate", "empty", "an empty var", [] { evaluate(Var()); }},
      {"value", "an input", "is not fed", [&w] { value<float>(w.x); }},
      {"OpTable::add", "empty", "an op needs a name", [] { OpTable().add(Op()); }},
      {"OpTable::at", "unknown", "unknown op 'no'", [] { builtin_ops().at("no"); }},
  };
}

/// All rows.
std::vector<Row> rows_of_all(World& w) {
  std::vector<Row> all;
  for (const auto& rows_of : {rows_of_arrays, rows_of_tapes, rows_of_players})
    for (Row& row : rows_of(w)) all.push_back(std::move(row));
  return all;
}
}  // namespace

TEST_CASE("misuse of arrays, tapes and players is an Error, or works as the table says") {
  check_rows<World>(rows_of_all);
}

TEST_CASE("the table has every function of tapes, vars and players that can be misused") {
  check_complete<World>(rows_of_all, {"attributes.hpp", "tape.hpp", "player.hpp", "compiled.hpp"},
                        {"ArrayOrNumber::view", "ArraysOrNumbers::list",
                         "Tape::mode",          "Tape::default_dtype",
                         "Tape::ops",           "Tape::set_ops",
                         "Tape::capacity",      "Tape::caches",
                         "Tape::states",        "Tape::to_dot",
                         "Tape::blank",         "Tape::out_of_call",
                         "Tape::in_fused_call", "Tape::results",
                         "Var::empty",          "Compiled::step",
                         "Compiled::set_step",  "Compiled::clear",
                         "Executable::plan",    "Executable::threads",
                         "Executable::tape",    "Executable::outputs",
                         "Executable::options", "Compiled::function_of",
                         "Var::bool",           "Var::shape",
                         "Var::dtype",          "Var::rank",
                         "Argument::caller",    "Operand::caller",
                         "Operand::is_literal", "Operand::literal",
                         "Operand::var",        "Attributes::find",
                         "Attributes::items",   "Attributes::set",
                         "attribute_of",        "name_of",
                         "to_string",           "MemoryError::least",
                         "Passes::reference",   "Passes::unfused",
                         "Plan::peak_bytes",    "make_arena",
                         "make_packed_weights", "repack"},
                        50);
}

TEST_CASE("temporaries move into feeds and lists of named arrays") {
  Tape tape;
  const Var x = tape.input("x", {2});
  const Var y = x * 2;
  Player player(tape, {y});
  const std::vector<Feed> feeds = {{x, xt::xarray<float>{1, 2}}};
  const NamedArrays named = Store{{"x", Array(xt::xarray<float>{3, 4})}};
  const std::vector<Array> others(64, Array(Dtype::float32, {2}));  // would take the memory of freed arrays
  player.play(feeds);
  CHECK(player.value<float>(y) == xt::xarray<float>{2, 4});
  player.play({{x, named.at("x")}});
  CHECK(player.value<float>(y) == xt::xarray<float>{6, 8});
  const Array held(xt::xarray<float>{5, 6});
  CHECK(ArrayView(held).data() == held.data());
}

TEST_CASE("plays without a step count on; a step, or set_step, draws again") {
  Tape tape;
  const Var y = uniform(tape, {16});
  Player player(tape, {y});
  std::vector<xt::xarray<float>> drawn;
  const auto play = [&](const std::function<void()>& how) {
    how();
    drawn.push_back(player.value<float>(y));
  };
  for (int i = 0; i < 3; ++i) play([&] { player.play(); });
  CHECK(player.step() == 3);
  CHECK(drawn[0] != drawn[1]);
  CHECK(drawn[1] != drawn[2]);
  play([&] { player.play({}, 1); });
  CHECK(drawn[3] == drawn[1]);
  play([&] { player.play(); });
  CHECK(drawn[4] == drawn[2]);
  player.set_step(0);
  play([&] { player.play(); });
  CHECK(drawn[5] == drawn[0]);
  CHECK_THROWS_AS(player.play({{Var(), drawn[0]}}), Error);
  CHECK(player.step() == 1);
  Player second(tape, {y});  // has a stream of its own
  second.play();
  CHECK(second.value<float>(y) == drawn[0]);
}
}  // namespace misuse::tapes
