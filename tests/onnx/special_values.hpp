/// Files of single ops, and special numbers to play them with: infinities, NaN, zeros of both signs, subnormal and huge
/// numbers, and the ends of integers.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/arrays/visit.hpp"
#include "op_files.hpp"
#include "op_samples.hpp"
#include "round_trip.hpp"
#include "xtape/op/op.hpp"

namespace xtape::special_values {

inline constexpr std::array dtypes = {Dtype::float32, Dtype::float64, Dtype::float16, Dtype::bfloat16,
                                      Dtype::int64,   Dtype::int32,   Dtype::boolean};

/// A file of one op, and what it is played with.
struct Case {
  std::string name, op;
  Dtype dtype = Dtype::float32;
  Tape tape = Tape(Mode::eval);
  OnnxSaveOptions options;
  NamedVars outputs;
  std::vector<Store> plays;
  bool elementwise = false;
};

/// Another call of an op than the sample, or another version of ONNX's operators.
struct Variant {
  std::string op, suffix;
  Attributes attributes;
  std::int64_t opset = 18;
};
inline const std::vector<Variant>& variants() {
  static const std::vector<Variant> all = [] {
    std::vector<Variant> list = {
        {"argmax", "_row", {{"axis", std::int64_t{1}}}},
        {"argmin", "_row", {{"axis", std::int64_t{1}}}},
        {"bucketize", "_right", {{"right", true}}},
        {"cumsum", "_reverse", {{"reverse", true}}},
        {"gelu", "_tanh", {{"approximate", std::string("tanh")}}},
        {"gelu", "_20", {}, 20},
        {"gelu", "_tanh_20", {{"approximate", std::string("tanh")}}, 20},
        {"layer_norm", "_23", {}, 23},
        {"max", "_row", {{"axis", Integers{1}}}},
        {"min", "_row", {{"axis", Integers{1}}}},
        {"rms_norm", "_23", {}, 23},
        {"searchsorted", "_right", {{"right", true}}},
        {"top_k", "_least", {{"largest", false}}},
    };
    for (const char* reduce : {"prod", "amin", "mean"})
      list.push_back({"index_reduce", std::string("_") + reduce, {{"reduce", std::string(reduce)}}});
    for (const char* reduce : {"prod", "amin", "set"})
      list.push_back({"scatter_elements", std::string("_") + reduce, {{"reduce", std::string(reduce)}}});
    for (const Dtype dtype : dtypes) list.push_back({"cast", std::string("_") + name_of(dtype), {{"dtype", dtype}}});
    list.push_back({"cast", "_int8", {{"dtype", Dtype::int8}}});
    return list;
  }();
  return all;
}

/// Which special numbers: those for one input, for pairs, or for ops that multiply and add up, in which the largest
/// number would overflow in one order of the steps and not in another.
enum class Choice : std::uint8_t { many, few, multiplied };

/// The special numbers of a dtype as doubles, rounded when they become elements.
inline std::vector<double> special_floats(Dtype dtype, Choice choice) {
  constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  double smallest = 0x1p-149, most = std::numeric_limits<float>::max();
  if (dtype == Dtype::float64) smallest = 0x1p-1074, most = std::numeric_limits<double>::max();
  if (dtype == Dtype::float16) smallest = 0x1p-24, most = 65504;
  if (dtype == Dtype::bfloat16) smallest = 0x1p-133, most = 0x1.FEp127;
  if (choice == Choice::multiplied) most = std::sqrt(most) / 4;
  std::vector<double> numbers = {0, -0.0, 1, -1, 0.1, -1.5, 3, 6, infinity, -infinity, nan, smallest, most, -most};
  if (choice != Choice::many) return numbers;
  for (const double each : {smallest, 0.3,  0.5,  0.9,   1 + 0x1p-7, 1.5,     2.0,    2.5,    5.0,    7.0,
                            9.0,      10.0, 15.0, 20.0,  27.0,       50.0,    88.0,   89.0,   127.5,  128.0,
                            200.0,    1e-3, 1e-6, 1e-20, 1e20,       40000.0, 0x1p31, 0x1p53, 0x1p63, 1e300})
    numbers.insert(numbers.end(), {each, -each});
  return numbers;
}
inline std::vector<std::int64_t> special_integers(Dtype dtype) {
  if (dtype == Dtype::boolean) return {0, 1};
  const bool narrow = dtype == Dtype::int32;
  const std::int64_t least =
      narrow ? std::numeric_limits<std::int32_t>::min() : std::numeric_limits<std::int64_t>::min();
  const std::int64_t odd = narrow ? 46341 : 0x20000000000001;  // its square, or it as a double, is not exact
  std::vector<std::int64_t> numbers = {least, least + 1, -(least + 1), -(least / 3), odd, 63};
  for (const std::int64_t each : {-7, -3, -2, -1, 0, 1, 2, 3, 7}) numbers.push_back(each);
  return numbers;
}

/// Fills an array with special numbers: element i is number `at(i)`, modulo their count.
template <class At>
Array specials(const ValueType& type, Choice choice, const At& at) {
  Array array(type.dtype, type.shape);
  const std::vector<double> floats = special_floats(type.dtype, choice);
  const std::vector<std::int64_t> integers = special_integers(type.dtype);
  visit_elements(array, [&]<class T>(T* elements) {
    for (std::int64_t i = 0; i < array.count(); ++i) {
      const auto k = static_cast<std::size_t>(at(i));
      if constexpr (std::is_integral_v<T>)
        elements[i] = static_cast<T>(integers[k % integers.size()]);
      else if constexpr (std::is_same_v<T, double>)
        elements[i] = floats[k % floats.size()];
      else
        elements[i] = static_cast<T>(static_cast<float>(floats[k % floats.size()]));
    }
  });
  return array;
}

/// Ordinary numbers with a few special ones, for ops whose elements depend on many elements. Every play has others.
inline Array with_specials(const ValueType& type, int input, int play) {
  Array array = round_trip::numbers_for(type, input + play);
  if (array.count() == 0) return array;
  const Array special = specials({type.dtype, {14}}, Choice::multiplied, [](std::int64_t i) { return i; });
  const auto put = [&](std::int64_t i, std::int64_t k) {
    const std::size_t size = size_of(type.dtype);
    std::memcpy(static_cast<char*>(array.data()) + static_cast<std::size_t>(i % array.count()) * size,
                static_cast<const char*>(special.data()) + static_cast<std::size_t>(k) * size, size);
  };
  // The places among the special floats: 8 inf, 9 -inf, 10 NaN, 11 the smallest, 12 the largest, 13 its opposite.
  constexpr std::array<std::array<std::int64_t, 2>, 6> pairs = {{{10, 8}, {8, 0}, {9, 9}, {11, 1}, {12, 13}, {13, 0}}};
  const auto pair = pairs[static_cast<std::size_t>(play) % pairs.size()];
  if (play >= 6) {  // all elements of one input
    for (std::int64_t i = 0; i < array.count(); ++i)
      if (play == 6 || input == 0) put(i, play == 6 ? 1 - input % 2 : 9);
    return array;
  }
  put(play + 2 * input, pair[static_cast<std::size_t>(input) % 2]);
  if (input == 0) put(play + 4, pair[0]);
  return array;
}

/// Whether an element of the results depends on nothing but the elements at its place.
inline bool is_elementwise(const Op& op, const op_samples::Sample& sample) {
  for (const ValueType& type : sample.inputs)
    if (type.shape != Shape{3, 3}) return false;
  if (sample.inputs.empty() || sample.attributes.find("shape") != nullptr) return false;
  // The bytes of element `at` of the result for elements `from` to `to` of three.
  const auto element = [&](std::int64_t from, std::int64_t to, std::int64_t at) {
    Tape tape(Mode::eval);
    std::vector<Operand> operands;
    for (const ValueType& type : sample.inputs) {
      const Array three = round_trip::numbers_for({type.dtype, {3}}, static_cast<int>(operands.size()));
      operands.emplace_back(slice(tape.constant(three), {from}, {to}));
    }
    const Vars results = apply(tape, op, operands, sample.attributes);
    const Array found = evaluate(results.at(0));
    if (results.size() != 1 || found.shape() != Shape{to - from}) throw Error("not elementwise");
    const std::size_t size = size_of(found.dtype());
    return std::string(static_cast<const char*>(found.data()) + size * static_cast<std::size_t>(at - from), size);
  };
  try {
    return element(0, 3, 2) == element(2, 3, 2) && element(0, 3, 0) == element(0, 1, 0);
  } catch (const Error&) {
    return false;
  }
}

/// Every second play of an op that searches sorted numbers has infinities among these, or NaN at their end.
inline Array special_bounds(const std::string& op, const Array& given, int play) {
  Array array(given);
  if ((op != "searchsorted" && op != "bucketize") || play % 2 == 0) return array;
  visit_floats(array, [&](auto* elements) {
    using T = std::remove_reference_t<decltype(*elements)>;
    for (std::int64_t i = 0; i < array.count(); i += 3) {
      elements[i] = static_cast<T>(play % 4 == 1 ? -INFINITY : 0.5F);
      elements[i + 1] = static_cast<T>(play % 4 == 1 ? 0.5F : INFINITY);
      elements[i + 2] = static_cast<T>(play % 4 == 1 ? INFINITY : NAN);
    }
  });
  return array;
}

inline std::vector<Feed> feeds_of(const NamedVars& inputs, const Store& arrays) {
  std::vector<Feed> feeds;
  for (const auto& [name, var] : inputs) feeds.emplace_back(var, arrays.at(name));
  return feeds;
}

/// The outputs of every play.
inline std::vector<Store> played_all(const NamedVars& inputs, const NamedVars& outputs,
                                     const std::vector<Store>& plays) {
  Vars wanted;
  for (const auto& output : outputs) wanted.push_back(output.value);
  PlayerOptions one;
  one.threads = 1;
  Player player(wanted[0].tape(), wanted, one);
  std::vector<Store> all;
  for (const Store& play : plays) {
    player.play(feeds_of(inputs, play));
    all.emplace_back();
    for (const auto& [name, var] : outputs) all.back().add(name, Array(player.view(var)));
  }
  return all;
}

/// Removes the plays whose numbers the op refuses.
inline void keep_playable(Case& made) {
  const auto refused = [&](const Store& play) {
    try {
      played_all(made.options.inputs, made.outputs, {play});
      return false;
    } catch (const Error&) {
      return true;
    }
  };
  made.plays.erase(std::remove_if(made.plays.begin(), made.plays.end(), refused), made.plays.end());
}

/// Whether an input has blocks, as no input of a file has.
inline bool reads_blocks(const op_samples::Sample& sample) {
  return std::ranges::any_of(sample.inputs, [](const ValueType& type) { return is_block(type.dtype); });
}

/// The case of a call with this dtype in place of float32. Nothing if the op does not take the dtype.
inline std::optional<Case> case_of(const Op& op, Dtype dtype, const Variant* variant) {
  op_samples::Sample sample = op_samples::sample_of(op);
  if (variant != nullptr)
    for (const auto& [name, value] : variant->attributes.items()) sample.attributes.set(name, value);
  if (reads_blocks(sample)) return std::nullopt;
  const bool bits = op.name.starts_with("bitwise_");
  std::vector<bool> varied;
  for (ValueType& type : sample.inputs) {
    varied.push_back(bits || type.dtype == Dtype::float32);
    if (varied.back()) type.dtype = dtype;
  }
  const bool any = std::find(varied.begin(), varied.end(), true) != varied.end();
  if (!any && dtype != Dtype::float32) return std::nullopt;
  // Integers that become floats are those of `cast`.
  const auto as_floats = [](const InputSpec& input) { return input.accept == Accept::floating; };
  if (!is_floating(dtype) && std::any_of(op.inputs.begin(), op.inputs.end(), as_floats)) return std::nullopt;
  Case made;
  made.op = op.name;
  made.dtype = dtype;
  made.name = op.name + (variant != nullptr ? variant->suffix : "") + "_" + name_of(dtype);
  const Store fixed = fed_to(op.name, dtype);
  made.elementwise = any && fixed.empty() && is_elementwise(op, sample);
  const Choice choice = sample.inputs.size() > 1 ? Choice::few : Choice::many;
  const auto n = is_floating(dtype) ? std::ssize(special_floats(dtype, choice)) : std::ssize(special_integers(dtype));
  const std::int64_t count = sample.inputs.size() < 2 ? n : n * n;
  Tape& tape = made.tape;
  if (variant != nullptr) made.options.opset = variant->opset;
  std::vector<Operand> operands;
  for (ValueType& type : sample.inputs) {
    if (made.elementwise) type.shape = {count};
    const std::string name = "x" + std::to_string(operands.size());
    made.options.inputs.add(name, tape.input(name, type.shape, type.dtype));
    operands.emplace_back(made.options.inputs.at(name));
  }
  try {
    for (const Var& result : apply(tape, op, operands, sample.attributes))
      made.outputs.add("y" + std::to_string(made.outputs.size()), result);
  } catch (const Error&) {
    return std::nullopt;
  }
  for (int play = 0; play < (made.elementwise || !any ? 1 : 8); ++play) {
    Store feeds;
    for (std::size_t i = 0; i < sample.inputs.size(); ++i) {
      const std::string name = "x" + std::to_string(i);
      const auto input = static_cast<int>(i);
      if (const Array* array = fixed.find(name); array != nullptr)
        feeds.add(name, special_bounds(op.name, *array, play));
      else if (!varied[i])
        feeds.add(name, round_trip::numbers_for(sample.inputs[i], input));
      else if (made.elementwise)
        feeds.add(name, specials(sample.inputs[i], choice, [&](std::int64_t k) {
                    return i == 0 ? k % n : i == 1 ? k / n : k * 7 + k / n;
                  }));
      else
        feeds.add(name, with_specials(sample.inputs[i], input, play));
    }
    made.plays.push_back(std::move(feeds));
  }
  keep_playable(made);
  if (made.plays.empty()) return std::nullopt;
  return made;
}

}  // namespace xtape::special_values
