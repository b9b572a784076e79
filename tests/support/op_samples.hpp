/// A valid call of every op of the table, on small arrays.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "xtape/op/op.hpp"

namespace xtape::op_samples {

constexpr Dtype f32 = Dtype::float32, i64 = Dtype::int64, flag = Dtype::boolean;
using Types = std::vector<ValueType>;
using Sizes = std::vector<std::int64_t>;

/// A valid call.
struct Sample {
  Attributes attributes;  ///< Attributes without a default, and lists whose default is empty.
  Types inputs = {};      ///< Empty if all inputs have shape (3, 3).
};

inline const Attributes loss{};
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
        {"bitwise_and", {{}, {{i64, {3, 3}}, {i64, {3, 3}}}}},
        {"bitwise_left_shift", {{}, {{i64, {3, 3}}, {i64, {3, 3}}}}},
        {"bitwise_not", {{}, {{i64, {3, 3}}}}},
        {"bitwise_or", {{}, {{i64, {3, 3}}, {i64, {3, 3}}}}},
        {"bitwise_right_shift", {{}, {{i64, {3, 3}}, {i64, {3, 3}}}}},
        {"bitwise_xor", {{}, {{i64, {3, 3}}, {i64, {3, 3}}}}},
        {"bucketize", {{}, {{f32, {3, 3}}, {f32, {3}}}}},
        {"cast", {{{"dtype", Dtype::int32}}, {{f32, {3, 3}}}}},
        {"clip", {{{"low", 0.5}, {"high", 1.0}}}},
        {"crf_decode", {{}, {{f32, {2, 4, 3}}, {f32, {3, 3}}}}},
        {"crf_log_partition", {{}, {{f32, {2, 4, 3}}, {f32, {3, 3}}}}},
        {"crf_loss", {{}, {{f32, {2, 4, 3}}, {i64, {2, 4}}, {f32, {3, 3}}}}},
        {"crf_score", {{}, {{f32, {2, 4, 3}}, {i64, {2, 4}}, {f32, {3, 3}}}}},
        {"dequantize", {{}, {{Dtype::int8, {3, 4}}, {f32, {3, 1}}}}},
        {"dropout", {{{"rate", 0.5}}}},
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
        {"bernoulli", {{{"shape", Sizes{2, 3}}, {"p", 0.5}}}},
        {"broadcast_to", {{{"shape", Sizes{3, 3}}}}},
        {"cache", {{}, {{f32, {3, 3}}, {f32, {3, 4}}, {i64, {3}}}}},
        {"checked_indices", {{{"size", std::int64_t{3}}}}},
        {"circular_pad", {{{"before", Sizes{1, 0}}, {"after", Sizes{0, 1}}}}},
        {"conv", {{}, {{f32, {2, 4, 6}}, {f32, {3, 4, 2}}}}},
        {"conv_transpose", {{}, {{f32, {2, 4, 6}}, {f32, {4, 3, 2}}}}},
        {"cross_entropy", {loss, {{f32, {3, 3}}, {i64, {3}}}}},
        {"cross_entropy_loss", {{}, {{f32, {3, 3}}, {i64, {3}}}}},
        {"ctc_loss", {{}, {{f32, {3, 2, 4}}, {i64, {2, 2}}, {i64, {2}}, {i64, {2}}}}},
        {"cross_entropy_grad", {loss, {{f32, {3, 3}}, {i64, {3}}, {f32, {3}}, {f32, {}}}}},
        {"diagonal", {{{"axis1", std::int64_t{0}}, {"axis2", std::int64_t{1}}}}},
        {"expand_dims", {{{"axis", std::int64_t{0}}}}},
        {"eye", {{{"rows", std::int64_t{2}}}}},
        {"flip", {{{"axis", Sizes{0, 1}}}}},
        {"fold", {{{"axis", std::int64_t{0}}, {"length", std::int64_t{5}}}}},
        {"full", {{{"shape", Sizes{2, 3}}, {"value", 1.5}}}},
        {"glu", {{}, {{f32, {3, 4}}}}},
        {"group_norm", {{{"groups", std::int64_t{3}}}}},
        {"ragged_dot", {{}, {{f32, {3, 2}}, {f32, {2, 2, 4}}, {i64, {2}}}}},
        {"ragged_dot_weights", {{}, {{f32, {3, 2}}, {f32, {3, 4}}, {i64, {2}}}}},
        {"index_add", {{}, {{f32, {3, 3}}, {i64, {2}}, {f32, {2, 3}}}}},
        {"choice", {{{"num_samples", std::int64_t{2}}}, {{f32, {3, 3}}, {f32, {3}}}}},
        {"histogram", {{}, {{f32, {3, 3}}, {f32, {3}}}}},
        {"index_reduce", {{{"reduce", std::string("amax")}}, {{f32, {3, 3}}, {i64, {2}}, {f32, {2, 3}}}}},
        {"index_select", {{}, {{f32, {3, 3}}, {i64, {2}}}}},
        {"interpolate", {{{"size", Sizes{2}}}, {{f32, {2, 3, 6}}}}},
        {"iota", {{{"shape", Sizes{2, 3}}}}},
        {"kthvalue", {{{"k", std::int64_t{2}}}}},
        {"masked_select", {{{"size", std::int64_t{2}}}}},
        {"matrix_power", {{{"n", std::int64_t{2}}}}},
        {"max_pool", {{{"kernel_size", Sizes{2}}, {"stride", Sizes{1}}}, {{f32, {2, 3, 6}}}}},
        {"multinomial", {{{"num_samples", std::int64_t{2}}}}},
        {"nanquantile", {{}, {{f32, {3, 3}}, {f32, {3}}}}},
        {"nll_loss", {{}, {{f32, {3, 3}}, {i64, {3}}}}},
        {"nonzero_static", {{{"size", std::int64_t{2}}}}},
        {"one_hot", {{{"classes", std::int64_t{4}}}}},
        {"ones", {{{"shape", Sizes{2, 3}}}}},
        {"pad", {{{"before", Sizes{1, 0}}, {"after", Sizes{0, 1}}}}},
        {"polygamma", {{{"n", std::int64_t{1}}}}},
        {"product_cross_entropy",
         {{{"equation", std::string("rt,ct->rc")}}, {{f32, {3, 2}}, {f32, {4, 2}}, {i64, {3}}}}},
        {"randint", {{{"shape", Sizes{2, 3}}, {"low", std::int64_t{-2}}, {"high", std::int64_t{5}}}}},
        {"randn", {{{"shape", Sizes{2, 3}}}}},
        {"randperm", {{{"n", std::int64_t{5}}}}},
        {"quantile", {{}, {{f32, {3, 3}}, {f32, {3}}}}},
        {"rearrange", {{{"pattern", std::string("(a b) c -> a (c b)")}, {"sizes", NamedSizes{{"a", 3}, {"b", 1}}}}}},
        {"reshape", {{{"shape", Sizes{9, 1}}}}},
        {"reflection_pad", {{{"before", Sizes{1, 0}}, {"after", Sizes{0, 1}}}}},
        {"repeat_interleave", {{{"repeats", std::int64_t{2}}}}},
        {"replication_pad", {{{"before", Sizes{1, 0}}, {"after", Sizes{0, 1}}}}},
        {"roll", {{{"shifts", Sizes{1, 2}}, {"axis", Sizes{0, 1}}}}},
        {"root_of_squares", {{{"axis", Sizes{1}}}, {{f32, {3, 3}}, {f32, {3}}}}},
        {"scatter_elements", {{{"reduce", std::string("amax")}}, {{f32, {3, 3}}, {i64, {2, 3}}, {f32, {2, 3}}}}},
        {"slice", {{{"start", Sizes{0, 1}}, {"stop", Sizes{2, 3}}, {"step", Sizes{1, 1}}}}},
        {"split", {{{"sizes", Sizes{1, 2}}}}},
        {"squeeze", {{{"axis", Sizes{1}}}, {{f32, {3, 1}}}}},
        {"tile", {{{"repeats", Sizes{2, 1}}}}},
        {"top_k", {{{"k", std::int64_t{2}}}}},
        {"transpose", {{{"axes", Sizes{1, 0}}}}},
        {"uniform", {{{"shape", Sizes{2, 3}}}}},
        {"update_slice", {{{"start", Sizes{0, 1}}, {"step", Sizes{1, 1}}}, {{f32, {3, 3}}, {f32, {2, 2}}}}},
        {"windows", {{{"axis", std::int64_t{1}}, {"size", std::int64_t{2}}}}},
        {"zeros", {{{"shape", Sizes{2, 3}}}}}};
    map["attention_grad"] = {scores, attended};
    map["attention_grad"].inputs.insert(map["attention_grad"].inputs.begin() + 3, {f32, {2, 3, 4, 7}});
    for (const char* name :
         {"segment_max", "segment_mean", "segment_min", "segment_prod", "segment_softmax", "segment_sum"})
      map[name] = {{{"num_segments", std::int64_t{2}}}, {{f32, {3, 3}}, {i64, {3}}}};
    for (const char* name : {"all", "any", "logsumexp", "max", "mean", "median", "min", "sum", "var"})
      map[name].attributes.set("axis", Sizes{0, 1});
    return map;
  }();
  return table;
}

inline Sample sample_of(const Op& op) {
  const auto found = samples().find(op.name);
  Sample sample = found == samples().end() ? Sample{} : found->second;
  if (sample.inputs.empty())
    for (const InputSpec& input : op.inputs) {
      if (input.arity == Arity::optional) continue;
      const Dtype dtype = input.accept == Accept::integer ? i64 : input.accept == Accept::mask ? flag : f32;
      sample.inputs.insert(sample.inputs.end(), input.arity == Arity::many ? 2 : 1, {dtype, {3, 3}});
    }
  for (const AttributeSpec& spec : op.attributes)
    if (spec.initial && sample.attributes.find(spec.name) == nullptr) sample.attributes.set(spec.name, *spec.initial);
  return sample;
}

}  // namespace xtape::op_samples
