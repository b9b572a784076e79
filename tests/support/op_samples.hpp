/// A valid call of every op of the table, on small arrays. Most are found by trial; a row gives the others.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"

namespace xtape::op_samples {

constexpr Dtype f32 = Dtype::float32, i64 = Dtype::int64, flag = Dtype::boolean;
using Types = std::vector<ValueType>;
using Sizes = std::vector<std::int64_t>;

/// A valid call.
struct Sample {
  Attributes attributes;  ///< Those that trials do not find, and lists whose default is empty.
  Types inputs = {};      ///< Empty if trials find them.
};

inline const Attributes scores{{"scores", std::string("bqhe,bkhe->bhqk")}, {"outputs", std::string("bhqk,bkhd->bqhd")}};
inline const Types attended{{f32, {2, 3, 4, 5}}, {f32, {2, 6, 4, 5}}, {f32, {2, 6, 4, 7}}, {flag, {3, 6}}};

inline const std::map<std::string, Sample>& samples() {
  static const std::map<std::string, Sample> table = [] {
    std::map<std::string, Sample> map{
        {"adaptive_avg_pool", {{{"output_size", Sizes{2}}}, {{f32, {2, 3, 6}}}}},
        {"adaptive_max_pool", {{{"output_size", Sizes{2}}}, {{f32, {2, 3, 6}}}}},
        {"attention", {scores, attended}},
        {"avg_pool", {{{"kernel_size", Sizes{2}}, {"stride", Sizes{1}}}, {{f32, {2, 3, 6}}}}},
        {"batch_norm", {{}, {{f32, {2, 3, 4}}, {f32, {3}}, {f32, {3}}}}},
        {"batch_norm_grad", {{}, {{f32, {2, 3, 4}}, {f32, {2, 3, 4}}, {f32, {3}}, {f32, {3}}}}},
        {"clip", {{{"low", 0.5}, {"high", 1.0}}}},
        {"crf_decode", {{}, {{f32, {2, 4, 3}}, {f32, {3, 3}}}}},
        {"crf_log_partition", {{}, {{f32, {2, 4, 3}}, {f32, {3, 3}}}}},
        {"crf_loss", {{}, {{f32, {2, 4, 3}}, {i64, {2, 4}}, {f32, {3, 3}}}}},
        {"crf_score", {{}, {{f32, {2, 4, 3}}, {i64, {2, 4}}, {f32, {3, 3}}}}},
        {"dequantize", {{}, {{Dtype::int8, {3, 4}}, {f32, {3, 1}}}}},
        {"dequantize_blocks", {{}, {{Dtype::q4_k, {2, 256}}}}},
        {"einsum", {{{"equation", std::string("bqhd,bkhd->bhqk")}}, {{f32, {2, 3, 2, 4}}, {f32, {2, 5, 2, 4}}}}},
        {"einsum_add", {{{"equation", std::string("bi,io->bo")}}, {{f32, {2, 3}}, {f32, {3, 4}}, {f32, {2, 4}}}}},
        {"embedding_bag", {{}, {{i64, {3, 2}}, {f32, {3, 3}}}}},
        {"gather_nd", {{}, {{f32, {3, 3, 2}}, {i64, {4, 2}}}}},
        {"grid_sample", {{}, {{f32, {2, 3, 4, 5}}, {f32, {2, 3, 3, 2}}}}},
        {"layer_norm_grad", {{}, {{f32, {2, 3}}, {f32, {2, 3}}, {f32, {2}}, {f32, {2}}}}},
        {"lu_solve", {{}, {{f32, {3, 3}}, {f32, {3, 2}}, {f32, {3, 3}}, {i64, {3}}}}},
        {"masked_fill", {{{"value", -2.0}}}},
        {"prelu", {{}, {{f32, {2, 3}}, {f32, {3}}}}},
        {"rms_norm_grad", {{}, {{f32, {2, 3}}, {f32, {2, 3}}, {f32, {2}}}}},
        {"scatter_nd", {{}, {{f32, {3, 3, 2}}, {i64, {4, 2}}, {f32, {4, 2}}}}},
        {"bincount", {{{"length", std::int64_t{4}}}}},
        {"broadcast_to", {{{"shape", Sizes{3, 3}}}}},
        {"cache", {{}, {{f32, {3, 3}}, {f32, {3, 4}}, {i64, {3}}}}},
        {"checked_indices", {{{"size", std::int64_t{3}}}}},
        {"circular_pad", {{{"before", Sizes{1, 0}}, {"after", Sizes{0, 1}}}}},
        {"conv", {{}, {{f32, {2, 4, 6}}, {f32, {3, 4, 2}}}}},
        {"conv_transpose", {{}, {{f32, {2, 4, 6}}, {f32, {4, 3, 2}}}}},
        {"ctc_loss", {{}, {{f32, {3, 2, 4}}, {i64, {2, 2}}, {i64, {2}}, {i64, {2}}}}},
        {"diagonal", {{{"axis1", std::int64_t{0}}, {"axis2", std::int64_t{1}}}}},
        {"expand_dims", {{{"axis", std::int64_t{0}}}}},
        {"flip", {{{"axis", Sizes{0, 1}}}}},
        {"fold", {{{"axis", std::int64_t{0}}, {"length", std::int64_t{5}}}}},
        {"full", {{{"shape", Sizes{2, 3}}, {"value", 1.5}}}},
        {"glu", {{}, {{f32, {3, 4}}}}},
        {"group_norm", {{{"groups", std::int64_t{3}}}}},
        {"ragged_dot", {{}, {{f32, {3, 2}}, {f32, {2, 2, 4}}, {i64, {2}}}}},
        {"ragged_dot_weights", {{}, {{f32, {3, 2}}, {f32, {3, 4}}, {i64, {2}}}}},
        {"index_add", {{}, {{f32, {3, 3}}, {i64, {2}}, {f32, {2, 3}}}}},
        {"choice", {{{"num_samples", std::int64_t{2}}}, {{f32, {3, 3}}, {f32, {3}}}}},
        {"index_reduce", {{{"reduce", std::string("amax")}}, {{f32, {3, 3}}, {i64, {2}}, {f32, {2, 3}}}}},
        {"index_select", {{}, {{f32, {3, 3}}, {i64, {2}}}}},
        {"interpolate", {{{"size", Sizes{2}}}, {{f32, {2, 3, 6}}}}},
        {"max_pool", {{{"kernel_size", Sizes{2}}, {"stride", Sizes{1}}}, {{f32, {2, 3, 6}}}}},
        {"one_hot", {{{"classes", std::int64_t{4}}}}},
        {"pad", {{{"before", Sizes{1, 0}}, {"after", Sizes{0, 1}}}}},
        {"polygamma", {{{"n", std::int64_t{1}}}}},
        {"product_cross_entropy",
         {{{"equation", std::string("rt,ct->rc")}}, {{f32, {3, 2}}, {f32, {4, 2}}, {i64, {3}}}}},
        {"randint", {{{"shape", Sizes{2, 3}}, {"low", std::int64_t{-2}}, {"high", std::int64_t{5}}}}},
        {"randperm", {{{"n", std::int64_t{5}}}}},
        {"rearrange", {{{"pattern", std::string("(a b) c -> a (c b)")}, {"sizes", NamedSizes{{"a", 3}, {"b", 1}}}}}},
        {"reshape", {{{"shape", Sizes{9, 1}}}}},
        {"reflection_pad", {{{"before", Sizes{1, 0}}, {"after", Sizes{0, 1}}}}},
        {"replication_pad", {{{"before", Sizes{1, 0}}, {"after", Sizes{0, 1}}}}},
        {"roll", {{{"shifts", Sizes{1, 2}}, {"axis", Sizes{0, 1}}}}},
        {"root_of_squares", {{{"axis", Sizes{1}}}, {{f32, {3, 3}}, {f32, {3}}}}},
        {"scatter_elements", {{{"reduce", std::string("amax")}}, {{f32, {3, 3}}, {i64, {2, 3}}, {f32, {2, 3}}}}},
        {"slice", {{{"start", Sizes{0, 1}}, {"stop", Sizes{2, 3}}, {"step", Sizes{1, 1}}}}},
        {"split", {{{"sizes", Sizes{1, 2}}}}},
        {"squeeze", {{{"axis", Sizes{1}}}, {{f32, {3, 1}}}}},
        {"tile", {{{"repeats", Sizes{2, 1}}}}},
        {"transpose", {{{"axes", Sizes{1, 0}}}}},
        {"update_slice", {{{"start", Sizes{0, 1}}, {"step", Sizes{1, 1}}}, {{f32, {3, 3}}, {f32, {2, 2}}}}},
        {"windows", {{{"axis", std::int64_t{1}}, {"size", std::int64_t{2}}}}}};
    map["attention_grad"] = {scores, attended};
    map["attention_grad"].inputs.insert(map["attention_grad"].inputs.begin() + 3, {f32, {2, 3, 4, 7}});
    for (const char* name : {"all", "any", "logsumexp", "max", "mean", "median", "min", "sum", "var"})
      map[name].attributes.set("axis", Sizes{0, 1});
    return map;
  }();
  return table;
}

/// Records the call on a new tape.
inline Tape recorded_by(const Op& op, const Sample& sample) {
  Tape tape(Mode::eval);
  std::vector<Operand> operands;
  for (const ValueType& type : sample.inputs)
    operands.emplace_back(tape.input("x" + std::to_string(operands.size()), type.shape, type.dtype));
  apply(tape, op, operands, sample.attributes);
  return tape;
}

/// Returns whether the op can be recorded so. Attributes with a default may be missing.
inline bool is_valid(const Op& op, const Sample& sample) {
  try {
    recorded_by(op, sample);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// Values to try for an attribute without a default. None for texts, which need a row.
inline std::vector<Attribute> trials_of(const AttributeSpec& spec) {
  switch (spec.type) {
    case AttributeType::boolean:
      return {true};
    case AttributeType::integer:
      return {std::int64_t{2}, std::int64_t{0}};
    case AttributeType::number:
    case AttributeType::element:
      return {0.5};
    case AttributeType::integers:
      return {Sizes{2, 3}, Sizes{2}, Sizes{1, 0}};
    case AttributeType::dtype:
      return {Dtype::int32};
    default:
      return {};
  }
}

/// Tries shapes for the inputs from number `input` on: (3, 3) for all, then others.
inline bool found_shapes(const Op& op, Sample& sample, std::size_t input) {
  if (input == sample.inputs.size()) return is_valid(op, sample);
  for (const Shape& shape : {Shape{3, 3}, Shape{3}, Shape{2, 3, 4}, Shape{}}) {
    sample.inputs[input].shape = shape;
    if (found_shapes(op, sample, input + 1)) return true;
  }
  return false;
}

/// Completes a sample with attributes and inputs that the op accepts. Returns false if it finds none.
inline bool found_by_trial(const Op& op, Sample& sample, std::size_t attribute = 0) {
  for (; attribute < op.attributes.size(); ++attribute) {
    const AttributeSpec& spec = op.attributes[attribute];
    if (spec.initial || sample.attributes.find(spec.name) != nullptr) continue;
    for (const Attribute& value : trials_of(spec)) {
      Sample tried = sample;
      tried.attributes.set(spec.name, value);
      if (!found_by_trial(op, tried, attribute + 1)) continue;
      sample = tried;
      return true;
    }
    return false;
  }
  if (!sample.inputs.empty()) return is_valid(op, sample);
  for (const Dtype numbers : {f32, i64}) {
    sample.inputs.clear();
    for (const InputSpec& input : op.inputs) {
      if (input.arity == Arity::optional) continue;
      const Dtype dtype = input.accept == Accept::integer ? i64 : input.accept == Accept::mask ? flag : numbers;
      sample.inputs.insert(sample.inputs.end(), input.arity == Arity::many ? 2 : 1, {dtype, {}});
    }
    if (found_shapes(op, sample, 0)) return true;
  }
  return false;
}

/// Returns the sample of an op, or nullopt if there is no row and no trial succeeds.
inline std::optional<Sample> find_sample(const Op& op) {
  const auto found = samples().find(op.name);
  Sample sample = found == samples().end() ? Sample{} : found->second;
  if (!found_by_trial(op, sample)) return std::nullopt;
  for (const AttributeSpec& spec : op.attributes)
    if (spec.initial && sample.attributes.find(spec.name) == nullptr) sample.attributes.set(spec.name, *spec.initial);
  return sample;
}

inline Sample sample_of(const Op& op) {
  if (const auto sample = find_sample(op)) return *sample;
  throw Error("op '" + op.name + "' needs a row in tests/support/op_samples.hpp");
}

}  // namespace xtape::op_samples
