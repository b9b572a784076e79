// ONNX's own operator data: models of one operator each (and of some networks' parts) with inputs and the outputs that
// every reader must give. Those that xtape does not read are in refused.txt, with the reason.
#include <doctest/doctest.h>
#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <sstream>

#include "base/arrays/visit.hpp"
#include "base/system/files.hpp"
#include "needs.hpp"
#include "onnx/messages.hpp"
#include "onnx/operators.hpp"
#include "source_root.hpp"
#include "xtape/gradcheck.hpp"
#include "xtape/onnx.hpp"
#include "xtape/player.hpp"
#include "xtape/safetensors.hpp"

using namespace xtape;
using onnx::Element;

namespace {
const std::string data = "/usr/share/libonnx-testdata/data";

Needs needs_onnx_data() {
  return {std::filesystem::exists(data + "/node"), "Debian's package libonnx-testdata"};
}

/// "node/test_abs" … in alphabetical order.
std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const std::string group : {"node", "pytorch-converted", "pytorch-operator", "simple"})
    for (const auto& folder : std::filesystem::directory_iterator(data + "/" + group))
      names.push_back(group + "/" + folder.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

/// The patterns of the table, by reason; a line is "REASON: PATTERN PATTERN …".
std::map<std::string, std::vector<std::string>> refused_patterns() {
  std::map<std::string, std::vector<std::string>> patterns;
  std::ifstream table(source_root() + "/tests/onnx/refused.txt");
  for (std::string line; std::getline(table, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::size_t colon = line.find(": ");
    std::istringstream words(line.substr(colon + 2));
    for (std::string word; words >> word;) patterns[line.substr(0, colon)].push_back(word);
  }
  return patterns;
}

std::vector<onnx::Tensor> tensors(const std::string& folder, const std::string& kind, const onnx::Setting& setting) {
  std::vector<onnx::Tensor> all;
  for (int i = 0;; ++i) {
    const std::string path = folder + "/test_data_set_0/" + kind + "_" + std::to_string(i) + ".pb";
    if (!std::filesystem::exists(path)) return all;
    all.push_back(onnx::read_tensor(read_file(path)));
    all.back().array = onnx::with_floats(std::move(all.back().array), setting);
  }
}

std::vector<double> numbers(const ArrayView& view) {
  const Array array(view);
  std::vector<double> all;
  visit_elements(array, [&](const auto* elements) {
    for (std::int64_t i = 0; i < array.count(); ++i) all.push_back(static_cast<double>(elements[i]));
  });
  return all;
}

/// What is wrong with a result; empty if nothing is.
std::string difference(const ArrayView& result, const onnx::Tensor& expected, double tolerance) {
  if (expected.element == Element::float16) tolerance = 1e-3;
  if (result.shape() != expected.array.shape())
    return "shape " + to_string(result.shape()) + ", not " + to_string(expected.array.shape());
  if (result.dtype() != expected.array.dtype())
    return "dtype " + std::string(name_of(result.dtype())) + ", not " + name_of(expected.array.dtype());
  const std::vector<double> is = numbers(result), should = numbers(expected.array);
  for (std::size_t i = 0; i < is.size(); ++i) {
    const bool close = std::abs(is[i] - should[i]) <= 1e-6 + tolerance * std::abs(should[i]);
    if (!close && is[i] != should[i] && !(std::isnan(is[i]) && std::isnan(should[i])))
      return "element " + std::to_string(i) + " is " + std::to_string(is[i]) + ", not " + std::to_string(should[i]);
  }
  return "";
}

/// Opens, records and plays a case, with inputs that are fed or are constants. Returns what is wrong.
std::string played(const std::string& folder, const OnnxOptions& options, bool fed) {
  const onnx::Setting setting{0, options.floats};
  const OnnxModel model = open_onnx(folder + "/model.onnx", options);
  const std::vector<onnx::Tensor> given = tensors(folder, "input", setting);
  const std::vector<onnx::Tensor> expected = tensors(folder, "output", setting);
  Tape tape;
  Vars inputs;
  std::vector<Feed> feeds;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Array& array = given[i].array;
    inputs.push_back(fed ? tape.input("input " + std::to_string(i), array.shape(), array.dtype())
                         : tape.constant(array));
    if (fed) feeds.emplace_back(inputs.back(), array);
  }
  const Vars outputs = model.record(tape, inputs);
  if (outputs.size() != expected.size()) return std::to_string(outputs.size()) + " outputs";
  // Expectations of windows were computed with a pi of five digits.
  const double tolerance = folder.find("window") != std::string::npos ? 1e-3 : 1e-5;
  Player player(tape, outputs);
  player.play(feeds);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (const std::string wrong = difference(player.view(outputs[i]), expected[i], tolerance); !wrong.empty())
      return "output " + std::to_string(i) + ": " + wrong;
  return "";
}

/// The same. Inputs are constants only where a node needs to know them.
std::string failure(const std::string& folder, const OnnxOptions& options) {
  try {
    return played(folder, options, true);
  } catch (const Error& error) {
    const std::string why = error.what();
    if (why.find("must be known while recording") == std::string::npos) return why;
  }
  try {
    return played(folder, options, false);
  } catch (const Error& error) {
    return error.what();
  }
}
}  // namespace

TEST_CASE("every case of ONNX's operator data gives its outputs, unless the table says why not" * needs_onnx_data()) {
  const auto patterns = refused_patterns();
  std::set<std::string> unused;
  for (const auto& [reason, list] : patterns) unused.insert(list.begin(), list.end());
  for (const std::string& name : case_names()) {
    std::string why;
    for (const auto& [reason, list] : patterns)
      for (const std::string& pattern : list)
        if (fnmatch(pattern.c_str(), name.c_str(), 0) == 0) why = reason, unused.erase(pattern);
    if (why.empty()) {
      // Where float32 is at a tie between two whole numbers, float64 need not be.
      const bool rounds = name.find("dynamicquantizelinear") != std::string::npos;
      for (const OnnxOptions& options : {OnnxOptions{}, OnnxOptions{rounds ? Dtype::float32 : Dtype::float64}})
        CHECK_MESSAGE(failure(data + "/" + name, options) == "",
                      name << std::string(options.floats ? " in float64" : ""));
    } else {
      CHECK_MESSAGE(failure(data + "/" + name, {}) != "", name << " passes, but the table refuses it: " << why);
    }
  }
  for (const std::string& pattern : unused) FAIL_CHECK("no case is named " << pattern);
}

namespace {
/// Moves an array a little at random: away from kinks such as that of relu at 0, and from equal elements. Some files
/// have numbers from unset memory, and some negative ones under a root: those become small and positive.
Array moved(const Array& array, bool positive, std::mt19937& random) {
  std::uniform_real_distribution<double> size(1e-3, 2e-3);
  Array result = array.clone();
  for (std::int64_t i = 0; i < array.count(); ++i) {
    double& element = result.as<double>()[i];
    if (positive) element = std::abs(element);
    if (std::abs(element) > 1e6) element = 1;
    element += size(random);
  }
  return result;
}

bool has_nan(const std::vector<onnx::Tensor>& tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [](const onnx::Tensor& tensor) {
    const std::vector<double> all = numbers(tensor.array);
    return std::any_of(all.begin(), all.end(), [](double x) { return std::isnan(x); });
  });
}

/// The gradients of a case by its float inputs in float64, along one random direction, against a central difference.
/// nullopt if no float output depends on a float input that may change.
std::optional<GradcheckReport> checked_gradient(const std::string& folder, unsigned seed) {
  const onnx::Setting setting{0, Dtype::float64};
  const OnnxModel model = open_onnx(folder + "/model.onnx", {Dtype::float64});
  const bool positive = has_nan(tensors(folder, "output", setting));
  std::mt19937 random(seed);
  std::vector<Array> points;
  std::vector<bool> floats;
  for (const onnx::Tensor& tensor : tensors(folder, "input", setting)) {
    floats.push_back(tensor.array.dtype() == Dtype::float64 && tensor.array.count() > 0);
    points.push_back(floats.back() ? moved(tensor.array, positive, random) : Array(tensor.array));
  }
  if (std::none_of(floats.begin(), floats.end(), [](bool is_float) { return is_float; })) return std::nullopt;
  std::normal_distribution<double> normal;
  bool depends = false;
  const auto along = [&](const Vars& step) {  // the inputs at a step along the direction
    Tape tape = step[0].tape();
    Vars inputs;
    for (std::size_t i = 0; i < points.size(); ++i) {
      inputs.push_back(tape.constant(points[i]));
      if (!floats[i]) continue;
      Array direction(Dtype::float64, points[i].shape());
      for (std::int64_t k = 0; k < direction.count(); ++k) direction.as<double>()[k] = normal(random);
      inputs[i] = inputs[i] + step[0] * tape.constant(direction);
    }
    Vars outputs = model.record(tape, inputs);
    std::erase_if(outputs,
                  [](const Var& output) { return output.dtype() != Dtype::float64 || count_of(output.shape()) == 0; });
    depends = !outputs.empty();
    return depends ? outputs : Vars{step[0]};
  };
  const std::vector<Array> start{Array(Dtype::float64, Shape{})};
  const GradcheckReport report = gradcheck(along, start, {.tolerance = 1e-5});
  return depends ? std::optional(report) : std::nullopt;
}
}  // namespace

TEST_CASE("the gradient of every differentiable case of ONNX's operator data is that of finite differences" *
          needs_onnx_data()) {
  const auto patterns = refused_patterns();
  std::map<std::string, int> counts;
  for (const std::string& name : case_names()) {
    const auto is_name = [&](const std::string& pattern) { return fnmatch(pattern.c_str(), name.c_str(), 0) == 0; };
    if (std::any_of(patterns.begin(), patterns.end(),
                    [&](const auto& each) { return std::any_of(each.second.begin(), each.second.end(), is_name); }))
      continue;
    try {
      std::optional<GradcheckReport> report = checked_gradient(data + "/" + name, 1);
      if (report && !report->passed) report = checked_gradient(data + "/" + name, 2);  // a step may cross a kink
      ++counts[report ? "checked" : "without floats"];
      if (report) CHECK_MESSAGE(report->passed, name << ": " << report->message);
    } catch (const Error& error) {
      const std::string why = error.what();
      const bool known = why.find("must be known while recording") != std::string::npos;
      CHECK_MESSAGE(known, name << ": " << why);
      ++counts["with floats that recording needs"];
    }
  }
  for (const auto& [what, count] : counts) MESSAGE(count << " " << what);
  CHECK(counts["checked"] >= 744);
  CHECK(counts["with floats that recording needs"] <= 23);
}

// tests/golden/scripts/onnx_operators.py made these.
TEST_CASE("operators give what ONNX Runtime gives for other dtypes, attributes, empty arrays and broadcasting") {
  int cases = 0;
  for (const auto& file : std::filesystem::directory_iterator(source_root() + "/tests/golden/data/onnx/operators")) {
    if (file.path().extension() != ".onnx") continue;
    CAPTURE(file.path().filename().string());
    const OnnxModel model = open_onnx(file.path().string());
    const Store expected = load_arrays(std::filesystem::path(file.path()).replace_extension(".safetensors").string());
    Tape tape;
    const Vars outputs = model.record(tape, {});
    Player player(tape, outputs);
    player.play({});
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const std::string& name = model.outputs()[i].name;
      const Array& wanted = expected.at(name);
      const Element element = wanted.dtype() == Dtype::float16 ? Element::float16 : Element::none;
      CHECK_MESSAGE(difference(player.view(outputs[i]), {name, element, Array(wanted)}, 1e-5) == "", name);
      ++cases;
    }
  }
  CHECK(cases >= 130);
}

// tests/golden/scripts/onnx_nodes.py made these from the data of a later version of ONNX.
TEST_CASE("cases of operators that Debian's data does not have give their outputs") {
  const char* other = std::getenv("XTAPE_ONNX_NODES");  // all that the script can make
  const std::string place = other != nullptr ? other : source_root() + "/tests/golden/data/onnx/nodes";
  int cases = 0;
  for (const auto& folder : std::filesystem::directory_iterator(place)) {
    CHECK_MESSAGE(failure(folder.path().string(), {}) == "", folder.path().filename().string());
    ++cases;
  }
  CHECK(cases > 5);
}
