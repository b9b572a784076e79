// Definitions that give piece by piece what they give as a whole pass; others are refused by the call that is at fault.
#include <doctest/doctest.h>

#include "decode/step_trials.hpp"
#include "small_models.hpp"

using namespace xtape;
using decode::check_steps;
using decode::StepCheck;

namespace {
/// A model of one line, which makes y of the embedded tokens x.
std::string with_line(const std::string& line, const std::string& hyper = R"("width": 4)") {
  return R"json({
  "xtape": 2,
  "name": "small",
  "hyper": {"vocab_size": 7, )json" +
         hyper + R"json(},
  "blocks": {
    "table": {
      "weights": {"weight": {"shape": ["vocab_size", "width"], "init": "normal", "std": 0.7}},
      "inputs": ["i"],
      "result": "take(weight, i, axis=0)"
    },
    "step": {"inputs": ["x", "h"], "do": ["h = tanh(h + x)"], "result": "h, h"},
    "two": {"inputs": ["x", "h"], "do": ["h = tanh(h + x)"], "result": "h[0] + h[1], h"}
  },
  "model": {
    "modules": {"word": {"block": "table"}, "step": {"block": "step"}, "two": {"block": "two"}},
    "functions": {
      "unused": {"inputs": {"x": "float [b, t, width]"}, "result": "scan(step, x)[0] + scan(two, x, init=zeros((2, b, width)))[0]"},
      "logits": {
        "inputs": {"tokens": "int [b, t]"},
        "do": [
          "x = word(tokens)",
          ")json" +
         line + R"json("
        ],
        "result": "einsum('btd,vd->btv', y, word.weight)"
      }
    }
  }
})json";
}

std::string refusal(const std::string& definition) {
  Model model = small::made(definition);
  try {
    check_steps(model, "logits");
  } catch (const DefinitionError& error) {
    return error.what();
  }
  return "";
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
}  // namespace

TEST_CASE("what looks back through caches, scans and positions alone is played as the whole") {
  for (const Dtype dtype : {Dtype::float64, Dtype::float32}) {
    CAPTURE(name_of(dtype));
    for (const std::string& definition :
         {small::decoder, small::translator, with_line("y, h = scan(step, x, init=zeros((b, width)), axis=1)"),
          with_line("y = x + cast(positions(tokens), 'float')[..., none]"),
          with_line("y = x - sum(x, axis=2, keepdims=true)")}) {
      Model model = small::made(definition, {}, dtype);
      const StepCheck check = check_steps(model, "logits");
      CHECK(check.unfit.empty());
      CHECK(check.tokens == 9);
      CHECK(check.pieces == std::vector<std::int64_t>{5, 1, 2, 1});
      CHECK(check.difference < (dtype == Dtype::float64 ? 1e-13 : 1e-5));
    }
  }
}

TEST_CASE("what sees the present piece alone is refused, by the call at fault") {
  const std::pair<const char*, const char*> faults[] = {
      {"y = x + cumsum(x, axis=1)", "cumsum"},
      {"y = x + cast(iota(t), 'float')[none, :, none]", "iota"},
      {"y = x + pad(x, (0, 1, 0), (0, 0, 0))[:, :-1]", "slice"},
      {"y = x + scan(step, tanh(x) * cast(iota(t), 'float')[none, :, none], init=zeros((b, width)), axis=1)[0]",
       "iota"},
  };
  for (const auto& fault : faults) {
    const std::string op = fault.second;
    const std::string said = refusal(with_line(fault.first));
    CAPTURE(said);
    CHECK(says(
        said, "function 'logits' of model 'small' gives other values in pieces, as in generation, than for the whole"));
    CHECK(says(said, "(3 rows of 9 tokens, in pieces of 5, 1, 2, 1)"));
    CHECK(says(said, "The first call whose values differ: " + std::string(op) +
                         ", logits (small.json, function 'logits', line 22)"));
  }
}

TEST_CASE("what looks ahead is refused, by the call at fault") {
  const std::pair<const char*, const char*> faults[] = {
      {"y = x + mean(x, axis=1, keepdims=true)", "mean"},
      {"y = x + flip(x, 1)", "flip"},
      {"y = x + scan(step, x, init=zeros((b, width)), axis=1, reverse=true)[0]", "scan"},
      {"y = matmul(softmax(matmul(x, transpose(x, (0, 2, 1)))), x)", "softmax"},
  };
  for (const auto& fault : faults) {
    const std::string op = fault.second;
    const std::string said = refusal(with_line(fault.first));
    CAPTURE(said);
    CHECK(says(said, "function 'logits' of model 'small' looks ahead"));
    CHECK(says(said, "The first call whose values differ: " + std::string(op) +
                         ", logits (small.json, function 'logits', line 22)"));
  }
}

TEST_CASE("what cannot be recorded in mode predict is refused with its line, whatever sizes the model has") {
  for (const char* layers : {"2", "3", "6"}) {  // never as many as rows
    const std::string said = refusal(with_line("y = x + scan(two, x, init=zeros((layers, b, width)), axis=1)[0]",
                                               "\"width\": 4, \"layers\": " + std::string(layers)));
    CAPTURE(said);
    CHECK(says(said,
               "small.json, function 'logits', line 22: scan: in mode predict a state must have a row for each of"));
  }
}

TEST_CASE("rows that look at each other are refused") {
  CHECK(says(refusal(with_line("y = x + mean(x, axis=0, keepdims=true)")), "than for the whole"));
}

TEST_CASE("what gives NaN is refused") {
  CHECK(says(refusal(with_line("y = sqrt(x - 9)")), "gives NaN at row"));
}

TEST_CASE("sizes are as the definition asks, or as given") {
  const std::string least =
      "y = x + cast(positions(tokens), 'float')[..., none]\",\n\"require(t <= places, 'too many')";
  for (const auto& each : {std::pair{"5", 4}, {"8", 6}, {"9", 9}, {"1", 1}}) {
    Model model = small::made(with_line(least, "\"width\": 4, \"places\": " + std::string(each.first)));
    CHECK(check_steps(model, "logits").tokens == each.second);
  }
  Model few = small::made(small::decoder, {{"places", "5"}});  // the table says so, as it is played
  CHECK(check_steps(few, "logits").tokens == 4);
  Model model = small::made(with_line("y = x", "\"width\": 4, \"three\": 3, \"five\": 5"));
  CHECK(check_steps(model, "logits").rows == 11);
  const StepCheck given = check_steps(model, "logits", {{"b", 2}, {"t", 12}});
  CHECK(given.rows == 2);
  CHECK(given.tokens == 12);
  CHECK(given.pieces == std::vector<std::int64_t>{6, 1, 2, 1, 2});
  Model none = small::made(with_line("y = x\",\n\"require(t > 99, 'not enough')"));
  CHECK_THROWS_WITH_AS(check_steps(none, "logits"), doctest::Contains("not enough"), DefinitionError);
}

TEST_CASE("there may be more classes than tokens") {
  std::string definition = with_line("y = x");
  const std::string word = "'btd,vd->btv', y, word.weight";
  definition.replace(definition.find(word), word.size(), "'btd,vd->btv', y, concat(word.weight, word.weight, axis=0)");
  Model model = small::made(definition);
  CHECK(check_steps(model, "logits").difference < 1e-13);
}

TEST_CASE("functions that nothing could be generated from are left alone") {
  const std::string functions = R"json({
    "xtape": 2,
    "name": "others",
    "hyper": {"width": 4},
    "model": {
      "functions": {
        "image": {"inputs": {"x": "float [b, width]"}, "result": "x"},
        "class": {"inputs": {"tokens": "int [b, t]"}, "result": "cast(tokens, 'float')"},
        "pairs": {"inputs": {"tokens": "int [b, t]", "kinds": "int [b, t]"}, "result": "cast(tokens + kinds, 'float')"},
        "fixed": {"inputs": {"tokens": "int [b, width]"}, "result": "cast(tokens, 'float')"}
      }
    }
  })json";
  Model model = small::made(functions);
  CHECK(check_steps(model, "image").unfit == "takes no tokens");
  CHECK(check_steps(model, "class").unfit == "gives float64 (3, 9) for tokens (3, 9), not a row of classes for each");
  CHECK(check_steps(model, "pairs").unfit == "takes kinds for each token");
  CHECK(check_steps(model, "fixed").unfit == "takes tokens that are not int [rows, tokens]");
}

TEST_CASE("random weights are numbers other than 0, the same each time") {
  Model model = small::made(small::translator), other = small::made(small::translator, {}, Dtype::float64, 8);
  decode::draw_weights(model);
  decode::draw_weights(other);
  for (const Store::Entry& entry : model.weights()) {
    const double* numbers = entry.value.as<double>();
    CHECK(std::none_of(numbers, numbers + entry.value.count(), [](double number) { return number == 0; }));
    CHECK(std::equal(numbers, numbers + entry.value.count(), other.weights().at(entry.name).as<double>()));
  }
  CHECK(check_steps(model, "logits").difference < 1e-13);
}
