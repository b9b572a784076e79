// Special values in files. Every op that can be written is compared three times: what the tape plays, what the file
// plays after it is read back, and what ONNX Runtime played (tests/golden/data/onnx/special_values.json, made by
// special_values.py).
#include "special_values.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/bytes/encodings.hpp"
#include "graph_digest.hpp"
#include "source_root.hpp"
#include "xtape/text.hpp"

using namespace xtape;
using namespace xtape::special_values;

namespace {
struct Tolerance {
  double relative, smallest;  ///< Numbers below `smallest` are subnormal.
};
Tolerance tolerance_of(Dtype dtype) {
  return dtype == Dtype::float64    ? Tolerance{1e-12, 0x1p-1022}
         : dtype == Dtype::float16  ? Tolerance{2e-3, 0x1p-14}
         : dtype == Dtype::bfloat16 ? Tolerance{1e-2, 0x1p-126}
                                    : Tolerance{1e-5, 0x1p-126};
}

/// The largest finite size of a number, at least 1, because most of the inputs are of this size and may cancel.
template <class T>
double largest_of(const T* numbers, std::int64_t count) {
  double largest = 1;
  for (std::int64_t i = 0; i < count; ++i)
    if (const double size = std::abs(static_cast<double>(numbers[i])); std::isfinite(size))
      largest = std::max(largest, size);
  return largest;
}

/// How two numbers differ: "nan" where only one is NaN, "infinity" where only one is infinite or the signs differ,
/// "zero" for zeros of other signs, "value", or "" where they do not. Floats may differ by `allowed`.
template <class T>
std::string difference(T given, T wanted, double allowed) {
  if constexpr (std::is_integral_v<T>) return given == wanted ? "" : "value";
  const auto a = static_cast<double>(given), b = static_cast<double>(wanted);
  if (std::isnan(a) != std::isnan(b)) return "nan";
  if (std::isnan(a)) return "";
  if (a == b) return a == 0 && std::signbit(a) != std::signbit(b) ? "zero" : "";
  if (std::isinf(a) || std::isinf(b)) return "infinity";
  return std::abs(a - b) > allowed ? "value" : "";
}

/// Compares the results of all plays, along the first axis. Returns the differences by their kind, each with its first
/// occurrence.
std::map<std::string, std::string> differences(const Array& is, const Array& should, bool elementwise) {
  std::map<std::string, std::string> found;
  if (is.dtype() != should.dtype() || is.shape() != should.shape()) {
    found["type"] = to_string(ValueType{is.dtype(), is.shape()});
    return found;
  }
  const Tolerance tolerance = tolerance_of(is.dtype());
  const std::int64_t of_play = is.count() / is.shape()[0];
  visit_elements(should, [&]<class T>(const T* wanted) {
    using Shown = std::conditional_t<std::is_integral_v<T>, std::int64_t, double>;
    const T* given = is.as<T>();
    double largest = 0;
    for (std::int64_t i = 0; i < is.count(); ++i) {
      if (!elementwise && i % of_play == 0) largest = largest_of(wanted + i, of_play);
      const double size = std::max(std::abs(static_cast<double>(wanted[i])), largest);
      const std::string kind = difference(given[i], wanted[i], tolerance.smallest + tolerance.relative * size);
      if (kind.empty() || found.count(kind) != 0) continue;
      std::ostringstream text;
      text.precision(17);
      text << "element " << i << " is " << static_cast<Shown>(given[i]) << ", should be "
           << static_cast<Shown>(wanted[i]);
      found[kind] = text.str();
    }
  });
  return found;
}

/// The hash of what the file computes and of all inputs.
std::string digest(const std::string& path, const std::vector<Store>& plays) {
  std::string bytes = digest_of(onnx::read_model(read_text(path), path));
  for (const Store& play : plays)
    for (const auto& [name, array] : play) bytes.append(static_cast<const char*>(array.data()), array.bytes());
  return hash_of(bytes);
}

/// The result that is stored for an output: the bytes of all plays.
Array stored(const nlohmann::json& text, const ValueType& type) {
  const std::optional<std::string> bytes = from_base64(text.get<std::string>());
  REQUIRE(bytes);
  Array array(type.dtype, type.shape);
  REQUIRE(bytes->size() == array.bytes());
  std::memcpy(array.data(), bytes->data(), bytes->size());
  return array;
}

Array stacked(const std::vector<Store>& plays, const std::string& name) {
  const Array& first = plays[0].at(name);
  Shape shape = first.shape();
  shape.insert(0, std::ssize(plays));
  Array all(first.dtype(), shape);
  auto* to = static_cast<char*>(all.data());
  for (const Store& play : plays) {
    std::memcpy(to, play.at(name).data(), play.at(name).bytes());
    to += play.at(name).bytes();
  }
  return all;
}
/// A difference that is known, of one kind and op. Zeros of ONNX Runtime are not compared by sign, because its
/// operators lose the sign: `Where` of -0 is 0.
struct Known {
  bool runtime;                             ///< Only of ONNX Runtime, or of the file that is read back too.
  const char *op, *dtypes, *kind, *reason;  ///< "float" is every float.
  bool met = false;
  bool covers(const Case& made, const std::string& found, bool of_runtime) const {
    return made.op == op && std::string(name_of(made.dtype)).find(dtypes) != std::string::npos && found == kind &&
           (of_runtime || !runtime);
  }
};
std::vector<Known>& known() {
  static std::vector<Known> list = {
      {false, "conv_transpose", "float", "nan", "the op multiplies infinite weights with zeros around x"},
      {false, "cross_entropy_grad", "float", "nan", "the numbers for lse are not those of the logits"},
      {false, "batch_norm_grad", "float", "nan", "the numbers for the mean and the deviation are not those of x"},
      {false, "relu6", "float", "zero", "the maximum of 0 and -0 is either"},
      {true, "argmax", "float", "value", "ArgMax skips NaN"},
      {true, "argmin", "float", "value", "ArgMin skips NaN"},
      {true, "adaptive_max_pool", "float", "nan", "ReduceMax along an axis skips NaN"},
      {true, "max", "float", "nan", "ReduceMax along an axis skips NaN"},
      {true, "max_pool", "float", "nan", "ReduceMax along an axis skips NaN"},
      {true, "min", "float", "nan", "ReduceMin along an axis skips NaN"},
      {true, "index_reduce", "float", "nan", "ScatterND with max or min skips NaN"},
      {true, "segment_max", "float", "nan", "ScatterND with max skips NaN"},
      {true, "segment_min", "float", "nan", "ScatterND with min skips NaN"},
      {true, "scatter_elements", "float", "nan", "ScatterElements with max or min skips NaN"},
      {true, "sign", "float16", "nan", "Sign of float16 gives 0 for NaN"},
      {true, "gelu", "float", "value", "1 + tanh(u) loses its digits below -3; the constants of Gelu are float32"},
      {true, "sigmoid", "float", "value", "Sigmoid is an approximation with an absolute error"},
      {true, "silu", "float", "value", "Sigmoid is an approximation with an absolute error"},
      {true, "tanhshrink", "float", "value", "Tanh is an approximation, whose error x - tanh(x) shows near 0"},
      {true, "softplus", "float16", "infinity", "Softplus of float16 overflows at the largest number"},
      {true, "pow", "int", "value", "powers of integers are computed in float64"},
      {true, "prod", "int", "value", "products of integers are computed in float64"},
      {true, "sum", "int", "value", "sums of integers are computed in float64"},
  };
  return list;
}

/// CHECKs that an output agrees, except for known differences.
void check_agrees(const Case& made, const std::string& output, const Array& is, const Array& should, bool runtime) {
  for (const auto& [kind, text] : differences(is, should, made.elementwise)) {
    if (kind == "zero" && (runtime || !made.elementwise)) continue;
    bool expected = false;
    for (Known& each : known())
      if (each.covers(made, kind, runtime)) expected = each.met = true;
    const std::string whose = runtime ? " of ONNX Runtime, " : " of the file, ";
    const std::string shown = made.name + "." + output + whose + kind + ": " + text;
    INFO(shown);
    CHECK(expected);
  }
}

/// Writes and compares one case. `golden` is null if ONNX Runtime is still to play the file.
void judge(Case& made, const std::string& folder, const nlohmann::json* golden, nlohmann::json& digests) {
  const std::string path = folder + "/" + made.name + ".onnx";
  save_onnx(path, made.outputs, made.options);
  const std::string file = digests[made.name] = digest(path, made.plays);
  Tape copy;
  Vars given;
  NamedVars inputs, results;
  for (const auto& [input, var] : made.options.inputs) {
    inputs.add(input, copy.input(input, var.shape(), var.dtype()));
    given.push_back(inputs.at(input));
  }
  const Vars recorded = open_onnx(path).record(copy, given);
  for (std::size_t i = 0; i < recorded.size(); ++i) results.add(made.outputs[i].name, recorded[i]);
  const std::vector<Store> should = played_all(made.options.inputs, made.outputs, made.plays),
                           back = played_all(inputs, results, made.plays);
  for (std::size_t i = 0; i < made.outputs.size(); ++i) {
    const std::string& output = made.outputs[i].name;
    const Array wanted = stacked(should, output);
    check_agrees(made, output, stacked(back, output), wanted, false);
    if (golden == nullptr) continue;
    REQUIRE_MESSAGE(
        (golden->contains(made.name) && golden->at(made.name).at("file") == file),
        made.name << " is not the file that ONNX Runtime played: run tests/golden/scripts/special_values.py");
    if (const auto& played = golden->at(made.name); played.contains("y"))
      check_agrees(made, output, stored(played.at("y").at(i), {wanted.dtype(), wanted.shape()}), wanted, true);
  }
}

void save_plays(const Case& made, const std::string& path) {
  Store arrays;
  for (std::size_t i = 0; i < made.plays.size(); ++i)
    for (const auto& [input, array] : made.plays[i]) arrays.add(input + "." + std::to_string(i), Array(array));
  save_arrays(path, arrays);
}
}  // namespace

// With the variable XTAPE_ONNX_SPECIAL, the files and their inputs stay in that folder, for special_values.py.
TEST_CASE("special values: the tape, the file that is read back, and ONNX Runtime agree for every op") {
  const char* const kept = std::getenv("XTAPE_ONNX_SPECIAL");
  const Scratch scratch;
  const std::string folder = kept != nullptr ? kept : scratch.folder;
  nlohmann::json golden, digests;
  if (kept == nullptr)
    golden =
        nlohmann::json::parse(read_text(source_root() + "/tests/golden/data/onnx/special_values.json")).at("cases");
  const std::vector<std::string> written = onnx_written_ops();
  const std::set<std::string> operators(written.begin(), written.end());
  std::set<std::string> played;
  std::size_t compared = 0;
  for (const auto& [name, op] : builtin_ops().ops()) {
    if (!can_be_written(*op)) continue;
    std::vector<const Variant*> calls = {nullptr};
    for (const Variant& variant : variants())
      if (variant.op == name) calls.push_back(&variant);
    for (const Dtype dtype : dtypes)
      for (const Variant* variant : calls) {
        std::optional<Case> made = case_of(*op, dtype, variant);
        if (!made) continue;
        // Composed ops that ONNX Runtime has not played yet are compared with the tape alone.
        const bool is_golden = kept == nullptr && (golden.contains(made->name) || operators.count(name) == 1);
        judge(*made, folder, is_golden ? &golden : nullptr, digests);
        compared += is_golden;
        if (kept != nullptr) save_plays(*made, folder + "/" + made->name + ".safetensors");
        if (is_golden && golden[made->name].contains("y")) played.insert(name);
      }
  }
  if (kept != nullptr) {
    std::ofstream(folder + "/digests.json") << digests;
    return;
  }
  CHECK(golden.size() == compared);  // the file has no results of other cases
  CHECK(played.size() > 230);
  for (const std::string& name : operators) {
    INFO(name << ": ONNX Runtime plays no file of this op in the golden results");
    const Op* op = builtin_ops().find(name);
    CHECK((played.count(name) == 1 || op == nullptr || reads_blocks(op_samples::sample_of(*op))));
  }
  for (const Known& each : known()) {
    INFO(std::string(each.op) << ", " << std::string(each.kind) << ": no longer differs: " << std::string(each.reason));
    CHECK(each.met);
  }
}
