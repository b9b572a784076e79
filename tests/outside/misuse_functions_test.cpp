// Misuse of the functions that users pass: empty ones, and those that return nothing.
#include <filesystem>

#include "misuse.hpp"

using namespace xtape;

namespace misuse::functions {
namespace {
using Function = std::function<Vars(const Vars&)>;
using One = std::function<Var(const Var&)>;

struct World {
  Tape tape;
  Var x = tape.input("x", {3}), flag = tape.input("flag", {}, Dtype::boolean);
  Store weights = {{"w", Array(Dtype::float32, {3})}};
  Function same = [](const Vars& vars) { return vars; };
  Op op;

  World() {
    op.name = "own";
    op.doc = "Nothing.";
    op.inputs = {{"x", Accept::floating}};
    op.shape = [](const OpCall& call) { return std::vector<ValueType>{call.inputs[0]}; };
  }
};

std::vector<Row> rows_of_functions(World& w) {
  const std::string empty = "the function is empty", to_record = "the function to record is empty";
  const ArraysOrNumbers number{1.0F};
  return {
      {"checkpoint", "no function", empty, [&w] { checkpoint({}, {w.x}); }},
      {"scan", "no function", "the cell is empty", [&w] { scan({}, {w.x}, {}); }},
      {"while_loop", "no condition", "the condition or the body is empty", [&w] { while_loop({}, w.same, {w.x}, 1); }},
      {"while_loop", "no body", "the condition or the body is empty",
       [&w] { while_loop([&w](const Vars&) { return w.flag; }, {}, {w.x}, 1); }},
      {"cond", "no first branch", "a branch is empty", [&w] { cond(w.flag, {}, w.same, {w.x}); }},
      {"cond", "no second branch", "a branch is empty", [&w] { cond(w.flag, w.same, {}, {w.x}); }},
      {"vmap", "no function", empty, [&w] { vmap({}, {w.x}); }},
      {"custom_gradient", "no function", empty,
       [&w] { custom_gradient({}, [](const Vars& x, const Vars&, const Vars&) { return x; }, {w.x}); }},
      {"custom_gradient", "no rule", "the rule is empty", [&w] { custom_gradient(w.same, {}, {w.x}); }},
      {"gradcheck", "no function", empty, [] { gradcheck({}, std::vector<ArrayView>{}); }},
      {"implicit_root", "no function", empty, [&w] { implicit_root(Function(), {w.x}); }},
      {"implicit_root", "no function of one array", empty, [&w] { implicit_root(One(), w.x); }},
      {"fixed_point", "no function", empty, [&w] { fixed_point(Function(), {w.x}); }},
      {"fixed_point", "no function of one array", empty, [&w] { fixed_point(One(), w.x); }},
      {"linear_solve", "no function", "the product is empty", [&w] { linear_solve(Function(), {w.x}); }},
      {"linear_solve", "no function of one array", "the product is empty", [&w] { linear_solve(One(), w.x); }},
      {"odeint", "no function", empty, [&w] { odeint(OdeFunction(), {w.x}, w.x); }},
      {"odeint", "no function of one array", empty,
       [&w] { odeint(std::function<Var(const Var&, const Var&)>(), w.x, w.x); }},
      {"per_example_norms", "no function", "the function of the loss is empty",
       [&w] { per_example_norms({}, {w.x}, {w.x}); }},
      {"clipped_gradients", "no function", "the function of the loss is empty",
       [&w] { clipped_gradients({}, {w.x}, {w.x}, 1); }},
      {"feed_forward", "no function", "the activation is empty",
       [&w] {
         Parameters p(w.tape, w.weights);
         nn::feed_forward(p, w.x, 3, 0, {});
       }},
      {"Compiled::Compiled", "no function", to_record, [] { Compiled f{Compiled::Function()}; }},
      {"Compiled::Compiled", "no function of one array", to_record, [] { Compiled f{One()}; }},
      {"Compiled::Compiled", "a null pointer", to_record, [] { Compiled f{static_cast<Var (*)(Var)>(nullptr)}; }},
      {"Compiled::Compiled", "moved", to_record,
       [&w] {
         Function moved = w.same;
         const Function taken = std::move(moved);
         Compiled f{moved};
       }},
      {"Step::Step", "no function", to_record, [&w] { Step step(Objective(Function()), w.weights, Sgd{}); }},
      {"Step::Step", "no function of two arrays", to_record,
       [&w] { Step step(std::function<Var(Var, Var)>(), w.weights, Sgd{}); }},
      {"play", "no function", "",
       [&w] {
         Player(w.tape, {tanh(w.x)}).play({{w.x, w.weights.at("w")}}, 0, {});
       }},
      {"for_each_exported", "no function", "needs a function", [] { Model::parse(small_model).for_each_exported({}); }},
      {"watch_inputs", "no function", "", [] { watch_inputs({}); }},
      {"rows_of", "no function", "at least one column", [] { rows_of({}, 0, TextPlace()); }},
      {"generate_batch", "no function", "",
       [] {
         Model model = Model::parse(small_model);
         generate_batch(model, {{1}}, with(&GenerateOptions::tokens, 1), {});
       }},
      {"save", "no function", "", [] {}},    // Trainer::save, whose function may be empty
      {"record", "no function", "", [] {}},  // a virtual function of FileBlock, which the library calls
      {"apply", "no shape rule", "own: ",
       [&w] {
         w.op.shape = {};
         xtape::apply(w.op, Vars{w.x});
       }},
      {"apply", "a shape rule without types", "own: has no result",
       [&w] {
         w.op.shape = [](const OpCall&) { return std::vector<ValueType>(); };
         xtape::apply(w.op, Vars{w.x});
       }},
      {"apply", "a record function without results", "own: has no result",
       [&w] {
         w.op.record = [](Tape&, const Op&, const Vars&, const Attributes&) { return Vars(); };
         xtape::apply(w.op, Vars{w.x});
       }},
  };
}
}  // namespace

TEST_CASE("functions that are empty are an Error, or work as the table says") {
  check_rows<World>(rows_of_functions);
}

TEST_CASE("the table has every function that takes a function") {
  namespace fs = std::filesystem;
  std::string all;
  for (const auto& entry : fs::recursive_directory_iterator(std::string(XTAPE_SOURCE_ROOT) + "/include/xtape")) {
    if (entry.path().filename() == "onnx.hpp") continue;  // has a suite of its own
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) all += line.substr(0, line.find("//")) + ' ';
  }
  std::string types = "std::function<";
  const std::regex alias("using (\\w+)[^=;]* = std::function<");
  for (std::sregex_iterator found(all.begin(), all.end(), alias), end; found != end; ++found)
    types += "|\\b" + (*found)[1].str() + "&? ";
  World world;
  std::set<std::string> listed, declared;
  for (const Row& row : rows_of_functions(world)) listed.insert(row.function.substr(0, row.function.find("::")));
  // A declaration, up to the first parameter that is a function.
  const std::regex declaration("[A-Za-z>&] (\\w+)\\(([^;{}]*?)(" + types + ")");
  for (std::sregex_iterator found(all.begin(), all.end(), declaration), end; found != end; ++found)
    declared.insert((*found)[1]);
  std::string missing;
  for (const std::string& function : declared)
    if (listed.count(function) == 0) missing += function + " ";
  CHECK(missing == "");
  CHECK(declared.size() >= 19);
}

TEST_CASE("apply takes vectors of any constness, though std::apply matches vectors too") {
  World world;
  const Var& x = world.x;
  const Op& constant = world.op;
  Vars vars{x};
  const Vars constant_vars = vars;
  std::vector<Operand> operands{x};
  const std::vector<Operand> constant_operands = operands;
  const auto check = [&](const Vars& results) {
    REQUIRE(results.size() == 1);
    CHECK(results[0].shape() == Shape{3});
  };
  check(apply(world.op, vars));
  check(apply(world.op, constant_vars));
  check(apply(world.op, Vars{x}));
  check(apply(world.op, operands));
  check(apply(world.op, constant_operands));
  check(apply(world.op, std::vector<Operand>{x}));
  check(apply(world.op, {x}));
  check(apply(constant, vars));
  check(apply(constant, Vars{x}));
  check(apply(constant, operands));
  check(apply(constant, {x}, {}));
}
}  // namespace misuse::functions
