#include "golden.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "source_root.hpp"
#include "xtape/grad.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"

namespace xtape {

namespace {
using Json = nlohmann::json;

double number(const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (!value.is_string()) return value.get<double>();
  const std::string text = value.get<std::string>();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  return text == "-inf" ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
}

template <class T>
void write_elements(Array& array, const Json& data) {
  for (std::size_t i = 0; i < data.size(); ++i) array.as<T>()[i] = static_cast<T>(number(data[i]));
}

Array read_array(const Json& json, bool single) {
  Dtype dtype = dtype_named(json.at("dtype").get<std::string>());
  if (single && dtype == Dtype::float64) dtype = Dtype::float32;
  const auto sizes = json.at("shape").get<std::vector<std::int64_t>>();
  Array array(dtype, Shape(sizes.begin(), sizes.end()));
  const Json& data = json.at("data");
  REQUIRE(static_cast<std::int64_t>(data.size()) == array.count());
  switch (dtype) {
    case Dtype::float32:
      write_elements<float>(array, data);
      break;
    case Dtype::float64:
      write_elements<double>(array, data);
      break;
    case Dtype::int32:
      write_elements<std::int32_t>(array, data);
      break;
    case Dtype::int64:
      write_elements<std::int64_t>(array, data);
      break;
    default:
      write_elements<bool>(array, data);
  }
  return array;
}

double element(const Array& array, std::int64_t i) {
  switch (array.dtype()) {
    case Dtype::float32:
      return array.as<float>()[i];
    case Dtype::float64:
      return array.as<double>()[i];
    case Dtype::int32:
      return array.as<std::int32_t>()[i];
    case Dtype::int64:
      return static_cast<double>(array.as<std::int64_t>()[i]);
    default:
      return array.as<bool>()[i];
  }
}

Attributes read_attributes(const Json& json) {
  Attributes attributes;
  for (const auto& [name, value] : json.items()) {
    if (value.is_boolean())
      attributes.set(name, value.get<bool>());
    else if (value.is_number_integer())
      attributes.set(name, value.get<std::int64_t>());
    else if (value.is_number())
      attributes.set(name, value.get<double>());
    else if (value.is_string() && (value == "inf" || value == "-inf"))
      attributes.set(name, number(value));
    else if (value.is_string())
      attributes.set(name, value.get<std::string>());
    else
      attributes.set(name, value.get<std::vector<std::int64_t>>());
  }
  return attributes;
}

void check_close(const Array& got, const Array& golden, double tolerance, const std::string& what) {
  INFO(what);
  REQUIRE(got.shape() == golden.shape());
  CHECK(got.dtype() == golden.dtype());
  for (std::int64_t i = 0; i < golden.count(); ++i) {
    const double x = element(got, i);
    const double y = element(golden, i);
    const bool near = std::isfinite(y) && std::abs(x - y) <= tolerance * (1 + std::abs(y));
    const bool same = x == y || (std::isnan(x) && std::isnan(y)) || near;
    if (same) continue;
    INFO("element " << i << ": got " << x << ", golden " << y);
    CHECK(same);
  }
}

/// Plays a case with the kernels and with the reference.
void check_both(const Var& var, const Array& golden, double tolerance, const std::string& what) {
  Player player(var.tape(), {var});
  player.play();
  check_close(Array(player.view(var)), golden, tolerance, what + ", by the kernels");
  check_close(evaluate(var), golden, tolerance, what + ", by the reference");
}

void check_case(const Json& json, bool single, double tolerance) {
  Tape tape;
  Vars inputs;
  std::vector<Operand> operands;
  for (const Json& input : json.at("inputs")) {
    inputs.push_back(tape.parameter("x" + std::to_string(inputs.size()), read_array(input, single)));
    operands.emplace_back(inputs.back());
  }
  const Op& op = builtin_ops().at(json.at("op").get<std::string>());
  const Vars outputs = apply(tape, op, operands, read_attributes(json.at("attributes")));
  const Json& golden = json.at("outputs");
  REQUIRE(outputs.size() == golden.size());
  for (std::size_t i = 0; i < outputs.size(); ++i)
    check_both(outputs[i], read_array(golden[i], single), tolerance, "output " + std::to_string(i));
  if (!json.contains("gradients")) return;
  Vars reached, wanted, cotangents;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Json& cotangent = json.at("cotangents")[i];
    if (cotangent.is_null()) continue;
    reached.push_back(outputs[i]);
    cotangents.push_back(tape.constant(read_array(cotangent, single)));
  }
  const Json& gradients = json.at("gradients");
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!gradients[i].is_null()) wanted.push_back(inputs[i]);
  const Vars recorded = grad(reached, wanted, cotangents, {.materialize_grads = true});
  for (std::size_t i = 0, next = 0; i < inputs.size(); ++i)
    if (!gradients[i].is_null())
      check_both(recorded[next++], read_array(gradients[i], single), tolerance,
                 "gradient of input " + std::to_string(i));
  if (!json.contains("second")) return;
  Vars directions;
  for (const Json& direction : json.at("directions"))
    if (!direction.is_null()) directions.push_back(tape.constant(read_array(direction, single)));
  const Vars twice = grad(recorded, wanted, directions, {.allow_unused = true, .materialize_grads = true});
  for (std::size_t i = 0, next = 0; i < inputs.size(); ++i)
    if (!gradients[i].is_null())
      check_both(twice[next++], read_array(json.at("second")[i], single), tolerance,
                 "second gradient of input " + std::to_string(i));
}

Json read_file(const std::string& path) {
  std::ifstream stream(path);
  REQUIRE_MESSAGE(stream.good(), "no golden file " << path);
  return Json::parse(stream);
}
}  // namespace

void check_golden(const std::string& file, const std::string& op, double tolerance64, double tolerance32) {
  const Json json = read_file(source_root() + "/tests/golden/data/" + file);
  int found = 0;
  for (const Json& each : json.at("cases")) {
    if (!op.empty() && each.at("op").get<std::string>() != op) continue;
    ++found;
    INFO(each.at("op").get<std::string>() << " " << each.at("attributes").dump());
    check_case(each, false, tolerance64);
    if (tolerance32 > 0) check_case(each, true, tolerance32);
  }
  CHECK_MESSAGE(found > 0, "no golden case of " << op);
}

std::map<std::string, int> count_golden() {
  std::map<std::string, int> counts;
  const std::filesystem::path folder = source_root() + "/tests/golden/data";
  const auto count = [&](const std::filesystem::path& file) {
    const Json json = read_file(file.string());
    for (const Json& each : json.at("cases")) ++counts[each.at("op").get<std::string>()];
  };
  for (const auto& file : std::filesystem::directory_iterator(folder))
    if (file.path().extension() == ".json" && file.path().filename().string().starts_with("ops_")) count(file.path());
  for (const auto& file : std::filesystem::directory_iterator(folder / "many"))
    if (file.path().extension() == ".json") count(file.path());
  return counts;
}

}  // namespace xtape
