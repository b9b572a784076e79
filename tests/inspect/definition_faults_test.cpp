// Faults in definitions: the op, the module and the line of the file are named right in all.
#include <algorithm>
#include <filesystem>
#include <sstream>

#include "folders.hpp"
#include "play.hpp"
#include "xtape/grad.hpp"
#include "xtape/inspect.hpp"
#include "xtape/model.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;
using namespace xtape::test;

namespace {
struct DefinitionFault {
  std::string name;
  std::string op;      ///< Of the node that fails.
  std::string module;  ///< Where it is.
  std::string model;   ///< "modules" and "blocks"; the line at fault ends in "# fault".
  xt::xarray<float> x;
};

/// A definition whose function "loss" has the input x and whose model and blocks are given.
std::string definition(const std::string& parts) {
  return R"({
  "xtape": 2,
  "name": "faulty",
)" + parts +
         "\n}\n";
}

/// Of the line that ends in "# fault", as editors count.
int line_at_fault(const std::string& text) {
  const auto at = text.find("# fault");
  REQUIRE(at != std::string::npos);
  return 1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

const std::vector<DefinitionFault>& faults() {
  static const std::vector<DefinitionFault> list = {
      {"scores of the second layer overflow", "einsum", "layers.1", R"json(  "blocks": {
    "layer": {
      "hyper": {"growth": null},
      "inputs": {"x": "float [n, d]"},
      "do": [
        "scores = einsum('i d, j d -> i j', x, x)  # fault",
        "x = growth * x + softmax(scores) @ x"
      ],
      "result": "x"
    }
  },
  "model": {
    "modules": {"layers": {"block": "layer", "repeat": 2, "growth": 1e18}},
    "functions": {
      "loss": {"inputs": {"x": "float [n, d]"}, "do": ["x = layers(x)", "loss = mean(x)"], "result": "loss"}
    }
  })json",
       xt::xarray<float>{{10.F, 20.F}, {30.F, 40.F}}},
      {"mean over a row without tokens", "div", "pool", R"json(  "blocks": {
    "masked_mean": {
      "inputs": {"x": "float [n, d]"},
      "do": [
        "kept = cast(x > 0, 'float')",
        "total = sum(x * kept, axis=1)",
        "mean = total / sum(kept, axis=1)  # fault"
      ],
      "result": "mean"
    }
  },
  "model": {
    "modules": {"pool": {"block": "masked_mean"}},
    "functions": {
      "loss": {"inputs": {"x": "float [n, d]"}, "do": ["loss = sum(pool(x))"], "result": "loss"}
    }
  })json",
       xt::xarray<float>{{1.F, 2.F}, {-3.F, -4.F}}},
      {"normalisation without epsilon on a constant row", "rsqrt", "norm", R"json(  "blocks": {
    "own_norm": {
      "inputs": {"x": "float [n, d]"},
      "do": [
        "centred = x - mean(x, axis=1, keepdims=true)",
        "scale = rsqrt(mean(square(centred), axis=1, keepdims=true))  # fault"
      ],
      "result": "centred * scale"
    }
  },
  "model": {
    "modules": {"norm": {"block": "own_norm"}},
    "functions": {
      "loss": {"inputs": {"x": "float [n, d]"}, "do": ["loss = sum(square(norm(x)))"], "result": "loss"}
    }
  })json",
       xt::xarray<float>{{1.F, 2.F}, {4.F, 4.F}}},
      {"softmax by hand overflows", "exp", "", R"json(  "model": {
    "functions": {
      "loss": {
        "inputs": {"x": "float [n, d]"},
        "do": [
          "weights = exp(x * 50)  # fault",
          "p = weights / sum(weights, axis=1, keepdims=true)"
        ],
        "result": "-mean(log(p + 1e-9))"
      }
    }
  })json",
       xt::xarray<float>{{1.F, 2.F}, {0.F, 1.F}}},
      {"cross-entropy by hand of a probability of 0", "log", "", R"json(  "model": {
    "functions": {
      "loss": {
        "inputs": {"x": "float [n, d]"},
        "do": [
          "weights = exp(x - max(x, axis=1, keepdims=true))",
          "p = weights / sum(weights, axis=1, keepdims=true)",
          "surprise = -log(p)  # fault"
        ],
        "result": "mean(surprise)"
      }
    }
  })json",
       xt::xarray<float>{{1.F, 200.F}, {0.F, 1.F}}},
      {"softmax by hand of a row that is masked entirely", "sub", "", R"json(  "model": {
    "functions": {
      "loss": {
        "inputs": {"x": "float [n, d]"},
        "do": [
          "scores = masked_fill(x, x > 0, -inf)",
          "weights = exp(scores - max(scores, axis=1, keepdims=true))  # fault",
          "p = weights / sum(weights, axis=1, keepdims=true)"
        ],
        "result": "sum(p * x)"
      }
    }
  })json",
       xt::xarray<float>{{-1.F, 2.F}, {1.F, 2.F}}},
      {"an index out of range", "take", "table", R"json(  "blocks": {
    "lookup": {
      "hyper": {"rows": null},
      "weights": {"weight": {"shape": ["rows", 4], "init": "ones"}},
      "inputs": {"x": "float [n, d]"},
      "do": ["y = take(weight, cast(x, 'int64'))  # fault"],
      "result": "y"
    }
  },
  "model": {
    "modules": {"table": {"block": "lookup", "rows": 5}},
    "functions": {
      "loss": {"inputs": {"x": "float [n, d]"}, "do": ["loss = sum(table(x))"], "result": "loss"}
    }
  })json",
       xt::xarray<float>{{1.F, 5.F}, {0.F, 4.F}}},
      {"the length of a vector of zeros, backward", "div", "", R"json(  "model": {
    "functions": {
      "loss": {
        "inputs": {"x": "float [n, d]"},
        "do": [
          "squares = sum(square(x), axis=1)",
          "length = sqrt(squares)  # fault"
        ],
        "result": "sum(length)"
      }
    }
  })json",
       xt::xarray<float>{{0.F, 0.F}, {3.F, 4.F}}},
      {"a guarded division, backward", "div", "", R"json(  "model": {
    "functions": {
      "loss": {
        "inputs": {"x": "float [n, d]"},
        "do": [
          "ratio = 1 / x  # fault",
          "kept = where(x > 0, ratio, 0)"
        ],
        "result": "sum(kept)"
      }
    }
  })json",
       xt::xarray<float>{{0.F, 1.F}, {3.F, 4.F}}},
      {"a state that explodes", "mul", "cell", R"json(  "blocks": {
    "growing_cell": {
      "inputs": {"x": "float [n]", "h": "float [n]"},
      "do": [
        "h = h * h * x  # fault"
      ],
      "result": "h, h"
    }
  },
  "model": {
    "modules": {"cell": {"block": "growing_cell"}},
    "functions": {
      "loss": {
        "inputs": {"x": "float [n, d]"},
        "do": ["ys, h = scan(cell, x, init=ones((n,)))"],
        "result": "sum(h)"
      }
    }
  })json",
       xt::xarray<float>{{9.F, 9.F, 9.F, 9.F, 9.F, 9.F, 9.F, 9.F}, {1.F, 1.F, 1.F, 1.F, 1.F, 1.F, 1.F, 1.F}}},
      {"a variance below 0 by cancellation", "sqrt", "", R"json(  "model": {
    "functions": {
      "loss": {
        "inputs": {"x": "float [n, d]"},
        "do": [
          "variance = mean(square(x), axis=1) - square(mean(x, axis=1)) - 1e-3",
          "deviation = sqrt(variance)  # fault"
        ],
        "result": "sum(deviation)"
      }
    }
  })json",
       xt::xarray<float>{{3000.1F, 3000.1F, 3000.1F}, {1.F, 2.F, 3.F}}},
      {"a check of one's own", "watch", "", R"json(  "model": {
    "functions": {
      "loss": {
        "inputs": {"x": "float [n, d]"},
        "do": [
          "y = square(x)",
          "y = watch(y, y < 10)  # fault"
        ],
        "result": "sum(y)"
      }
    }
  })json",
       xt::xarray<float>{{1.F, 2.F}, {3.F, 4.F}}},
  };
  return list;
}

/// The play of the fault's loss and of its gradient.
RecordedPlay play_of(const Model& model, const DefinitionFault& fault) {
  Tape tape;
  const NamedVars inputs = model.inputs(
      tape, "loss",
      {{"n", static_cast<std::int64_t>(fault.x.shape()[0])}, {"d", static_cast<std::int64_t>(fault.x.shape()[1])}});
  Vars outputs = {model.record(tape, "loss", inputs)[0].value};
  outputs.push_back(grad(outputs[0], {inputs[0].value}, {.materialize_grads = true})[0]);
  Store fed;
  fed.add("x", Array(ArrayView(fault.x)));
  return {tape, outputs, fed, {}};
}
}  // namespace

TEST_CASE("faults in definitions: a copy gives the lines of its original while that says the same") {
  const Folder folder;
  for (const DefinitionFault& fault : faults()) {
    CAPTURE(fault.name);
    const std::string text = definition(fault.model);
    const std::string file = folder.write("own.json", text);
    const std::string copy = folder.write("copy.json", Model::load(file).definition_text());
    const auto site_of = [&](const std::string& original) {
      ModelOptions options;
      options.original = original;
      const Model model = Model::load(copy, options);
      const RecordedPlay play = play_of(model, fault);
      const Failure failure = find_failure(play).value().failure;
      std::vector<std::uint64_t> keys;
      for (std::size_t i = 0; i < play.tape.size(); ++i) keys.push_back(play.tape.node(i).site.key);
      return std::pair{failure.error ? failure.what : failure.site, keys};
    };
    const auto [site, keys] = site_of(file);
    CHECK(site.find("own.json") != std::string::npos);
    CHECK(site.find("line " + std::to_string(line_at_fault(text))) != std::string::npos);
    const auto [site_without, keys_without] = site_of("");
    CHECK(site_without.find("copy.json") != std::string::npos);
    CHECK(keys == keys_without);  // random numbers are those of the copy
    folder.write("own.json", "{}");
    CHECK(site_of(file) == site_of(""));
    std::filesystem::remove(file);
    CHECK(site_of(file) == site_of(""));
  }
}

TEST_CASE("faults in definitions: op, module and line are named, and the capsule fails in the same way") {
  for (const DefinitionFault& fault : faults()) {
    CAPTURE(fault.name);
    const std::string text = definition(fault.model);
    const std::optional<Capsule> capsule = find_failure(play_of(Model::parse(text, {}, "faulty.json"), fault));
    REQUIRE(capsule);
    CAPTURE(to_string(capsule->failure));
    CHECK(capsule->failure.op == fault.op);
    const std::string& place = capsule->failure.error ? capsule->failure.what : capsule->failure.site;
    CHECK(place.find("faulty.json") != std::string::npos);
    CHECK(place.find("line " + std::to_string(line_at_fault(text))) != std::string::npos);
    CHECK(place.find(fault.module) != std::string::npos);
    const Replay again = replay(*capsule);
    CHECK(again.fails);
    CHECK(again.same_bits);
  }
}
