// What a failure comes from: time steps and infinities are named, and no literal is blamed.
#include "faulty.hpp"
#include "folders.hpp"
#include "xtape/model.hpp"
#include "xtape/scan.hpp"
#include "xtape/xtensor.hpp"

namespace causes {

using namespace xtape;
using namespace xtape::test;
using namespace faulty;
using Numbers = xt::xarray<float>;
using Steps = std::pair<Vars, Vars>;

TEST_CASE("causes: a masked target in a definition") {
  const Model model = Model::parse(R"json({
  "xtape": 2, "name": "faulty", "hyper": {"vocab_size": 6},
  "blocks": {"table": {
    "weights": {"weight": {"shape": ["vocab_size", "vocab_size"], "init": "ones"}},
    "inputs": {"tokens": "int [n]"},
    "result": "take(weight, tokens)"
  }},
  "model": {
    "modules": {"table": {"block": "table"}},
    "functions": {"loss": {
      "inputs": {"tokens": "int [n]", "targets": "int [n]"},
      "do": [
        "logits = masked_fill(table(tokens), iota((vocab_size,)) < 3, -inf)",
        "total, count = cross_entropy(logits, targets)"
      ],
      "result": "total / count"
    }}
  }
})json",
                                   {}, "faulty.json");
  Tape tape;
  const NamedVars inputs = model.inputs(tape, "loss", {{"n", 5}});
  const Var loss = model.record(tape, "loss", inputs)[0].value;
  Vars outputs{loss};
  for (const Var& gradient : grad(loss, {tape.parameter(model.weights(), "table.weight")})) outputs.push_back(gradient);
  Store fed;
  fed.add("tokens", Array(ArrayView(xt::xarray<std::int64_t>{5, 4, 3, 5, 4})));
  fed.add("targets", Array(ArrayView(xt::xarray<std::int64_t>{5, 4, 3, 5, 1})));
  const std::optional<Capsule> capsule = find_failure({tape, outputs, fed, {}});
  REQUIRE(capsule);
  const std::string text = to_string(capsule->failure);
  CAPTURE(text);
  CHECK(capsule->failure.op == "cross_entropy");
  CHECK(text.find("line 14), from -inf in #") != std::string::npos);
  CHECK(text.find("masked_fill [4, 1]  at loss (faulty.json, function 'loss', line 13)") != std::string::npos);
}

TEST_CASE("causes: weights in blocks, whose capsule is saved and played again") {
  const test::Folder folder;
  for (const bool in_weight : {false, true}) {
    CAPTURE(in_weight);
    Array weight(Dtype::q8_0, {3, 32});  // each block: a float16 scale and 32 integers
    auto* words = static_cast<std::uint16_t*>(weight.data());
    for (int i = 0; i < 3 * 17; ++i) words[i] = i % 17 != 0 ? 0x0102 : in_weight && i == 17 ? 0x7C00 : 0x3C00;
    Tape tape;
    const Var x = tape.input("x", {2, 32}), w = dequantize(tape.parameter("w", weight));
    const Var y = einsum("bi,oi->bo", {x, w});
    Array fed_x(Dtype::float32, {2, 32});
    std::fill_n(fed_x.as<float>(), 64, in_weight ? 1.0F : 0.5F);
    if (!in_weight) fed_x.as<float>()[32] = 3e38F;
    Store fed;
    fed.add("x", fed_x);
    const std::optional<Capsule> capsule = find_failure({tape, {sum(y)}, fed, {}});
    REQUIRE(capsule);
    CHECK(capsule->failure.op == (in_weight ? "dequantize_blocks" : "einsum"));
    const std::string path = folder / (in_weight ? "weight" : "input");
    capsule->save(path);
    const Capsule loaded = Capsule::load(path);
    CHECK(to_string(loaded.failure) == to_string(capsule->failure));
    const Replay again = replay(loaded);
    CHECK(again.fails);
    CHECK(again.same_bits);
  }
}

TEST_CASE("causes: no literal is a cause beside another operand") {
  Tape tape;
  const Var x = tape.input("x", {2});
  const Var p = sigmoid(x), rest = 1 - p;
  Store fed;
  fed.add("x", Array(ArrayView(Numbers{40.F, 1.F})));
  const std::optional<Capsule> capsule = find_failure({tape, {sum(log(rest))}, fed, {}});
  REQUIRE(capsule);
  const std::vector<Cause>& causes = capsule->failure.causes;
  REQUIRE(causes.size() >= 2);
  CHECK(causes[0].node.find(" sub") != std::string::npos);
  CHECK(causes[0].element == std::vector<std::int64_t>{0});
  CHECK(causes[0].number == "0");
  for (const Cause& cause : causes) CHECK(cause.node.find("constant") == std::string::npos);
}

TEST_CASE("causes: the same call at several time steps is one cause") {
  Tape tape;
  const Var x = tape.input("x", {1, 40});
  const auto cell = [](const Vars& slice, const Vars& state) {
    const Var grown = state[0] * 20;
    return Steps{{}, {grown + slice[0]}};
  };
  Store fed;
  fed.add("x", Array(ArrayView(Numbers(xt::ones<float>({1, 40})))));
  for (const bool reverse : {false, true}) {
    CAPTURE(reverse);
    const ScanOptions options{.axis = 1, .reverse = reverse, .valid = {}};
    const Var last = scan(cell, {x}, {ones(tape, {1})}, options).states[0];
    const std::optional<Capsule> capsule = find_failure({tape, {sum(last)}, fed, {}});
    REQUIRE(capsule);
    const Failure& failure = capsule->failure;
    CAPTURE(to_string(failure));
    CHECK(failure.op == "mul");
    const std::int64_t step = reverse ? 10 : 29;  // 20 to the power of 30 is the first above 3.4e38
    CHECK(failure.time_steps == std::vector<std::int64_t>{step});
    int sums = 0;
    for (const Cause& cause : failure.causes) {
      if (cause.node.find(": add") == std::string::npos) continue;
      ++sums;
      CHECK(cause.time_steps.size() >= 5);
      CHECK(cause.time_steps.front() == (reverse ? step + 1 : step - 1));
      CHECK(cause.time_steps[1] == (reverse ? step + 2 : step - 2));
      CHECK(to_string(cause).find(", at time steps " + std::to_string(cause.time_steps.front()) + " to ") !=
            std::string::npos);
    }
    CHECK(sums == 1);
  }
}

TEST_CASE("causes: a capsule keeps what the failure says") {
  Tape tape;
  const Var x = tape.input("x", {2, 4});
  const auto cell = [](const Vars& slice, const Vars& state) {
    return Steps{{}, {state[0] + log(masked_fill(slice[0], slice[0] < 0, -inf) - 2)}};
  };
  Store fed;
  fed.add("x", Array(ArrayView(Numbers{{3.F, 2.F, 5.F, 6.F}, {3.F, 4.F, 5.F, 6.F}})));
  const std::optional<Capsule> capsule =
      find_failure({tape, {sum(scan(cell, {x}, {zeros(tape, {2})}).states[0])}, fed, {}});
  REQUIRE(capsule);
  const Failure& failure = capsule->failure;
  CHECK(failure.op == "log");
  CHECK(failure.time_steps == std::vector<std::int64_t>{1});
  const Folder folder;
  capsule->save(folder / "capsule");
  const Failure again = Capsule::load(folder / "capsule").failure;
  CHECK(to_string(again) == to_string(failure));
  CHECK(again.time_steps == failure.time_steps);
  REQUIRE(again.causes.size() == failure.causes.size());
  for (std::size_t i = 0; i < again.causes.size(); ++i) {
    CHECK(to_string(again.causes[i]) == to_string(failure.causes[i]));
    CHECK(again.causes[i].element == failure.causes[i].element);
  }
}

TEST_CASE("causes: a second output that fails is no backward pass") {
  Tape tape;
  const Var x = tape.input("x", {2});
  const Var first = sum(x), second = sum(log(x));
  Store fed;
  fed.add("x", Array(ArrayView(Numbers{0.F, 1.F})));
  const std::optional<Capsule> capsule = find_failure({tape, {first, second}, fed, {}});
  REQUIRE(capsule);
  CHECK(capsule->failure.op == "log");
  CHECK_FALSE(capsule->failure.backward);
}

}  // namespace causes
