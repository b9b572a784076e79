// Every op of the table with extreme numbers in every element of its integer attributes, on small arrays and on
// broadcasts of very many elements. A call is either recorded with types that arrays can have or refused with an Error.
// Small results are also played.
#include <doctest/doctest.h>

#include <array>
#include <limits>
#include <map>

#include "played.hpp"
#include "xtape/grad.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"

using namespace xtape;

namespace {
constexpr std::array<std::int64_t, 8> extremes{std::numeric_limits<std::int64_t>::min(),
                                               -(std::int64_t{1} << 62),
                                               -1,
                                               0,
                                               std::int64_t{1} << 31,
                                               std::int64_t{1} << 32,
                                               std::int64_t{1} << 62,
                                               std::numeric_limits<std::int64_t>::max()};
constexpr Dtype f32 = Dtype::float32, i64 = Dtype::int64, flag = Dtype::boolean;
using Types = std::vector<ValueType>;
using Sizes = std::vector<std::int64_t>;

/// A valid call. The extremes replace its integers, one at a time.
struct Sample {
  Attributes attributes;  ///< Those without a default, and lists whose default is empty.
  Types inputs = {};      ///< Empty if all have shape (3, 3).
};

const Attributes loss{};
const Attributes scores{{"scores", std::string("bqhe,bkhe->bhqk")}, {"outputs", std::string("bhqk,bkhd->bqhd")}};
const Types attended{{f32, {2, 3, 4, 5}}, {f32, {2, 6, 4, 5}}, {f32, {2, 6, 4, 7}}, {flag, {3, 6}}};

const std::map<std::string, Sample>& samples() {
  static const std::map<std::string, Sample> table = [] {
    std::map<std::string, Sample> map{
        {"adaptive_avg_pool", {{{"output_size", Sizes{2}}}, {{f32, {2, 3, 6}}}}},
        {"adaptive_max_pool", {{{"output_size", Sizes{2}}}, {{f32, {2, 3, 6}}}}},
        {"attention", {scores, attended}},
        {"avg_pool", {{{"kernel_size", Sizes{2}}, {"stride", Sizes{1}}}, {{f32, {2, 3, 6}}}}},
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
        {"rearrange",
         {{{"pattern", std::string("(a b) c -> a (c b)")}, {"sizes", NamedSizes{{"a", 3}, {"b", 1}}}}}},
        {"reshape", {{{"shape", Sizes{9, 1}}}}},
        {"reflection_pad", {{{"before", Sizes{1, 0}}, {"after", Sizes{0, 1}}}}},
        {"repeat_interleave", {{{"repeats", std::int64_t{2}}}}},
        {"replication_pad", {{{"before", Sizes{1, 0}}, {"after", Sizes{0, 1}}}}},
        {"roll", {{{"shifts", Sizes{1, 2}}, {"axis", Sizes{0, 1}}}}},
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

Sample sample_of(const Op& op) {
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

/// The attribute with an extreme in place of each of its numbers in turn; empty if it has no numbers.
std::vector<Attribute> with_extremes(const Attribute& attribute) {
  std::vector<Attribute> all;
  for (const std::int64_t extreme : extremes) {
    if (std::holds_alternative<std::int64_t>(attribute)) all.emplace_back(extreme);
    if (const auto* list = std::get_if<Sizes>(&attribute))
      for (std::size_t i = 0; i < list->size(); ++i) {
        Sizes changed = *list;
        changed[i] = extreme;
        all.emplace_back(changed);
      }
    if (const auto* named = std::get_if<NamedSizes>(&attribute))
      for (std::size_t i = 0; i < named->size(); ++i) {
        NamedSizes changed = *named;
        changed.set(changed[i].name, extreme);
        all.emplace_back(changed);
      }
  }
  return all;
}

/// A broadcast of one element to about 2^56 elements. Equal sizes stay equal.
Shape enlarged(const Shape& shape, std::size_t most_axes) {
  Shape large = shape;
  for (std::int64_t& size : large)
    if (size > 1) size = std::int64_t{1} << (56 / most_axes);
  return large;
}

struct Recorded {
  Tape tape;
  Vars inputs, results;
};

/// Records the call and the gradients of its float results, on inputs of these types or on large broadcasts.
Recorded recorded(const Op& op, const Types& types, const Attributes& attributes, bool large) {
  Recorded made;
  std::size_t most_axes = 1;
  for (const ValueType& type : types) most_axes = std::max(most_axes, type.shape.size());
  Vars operands;
  for (const ValueType& type : types) {
    const Shape shape = large ? Shape::filled(type.shape.size(), 1) : type.shape;
    made.inputs.push_back(made.tape.input("x" + std::to_string(made.inputs.size()), shape, type.dtype));
    operands.push_back(large ? broadcast_to(made.inputs.back(), enlarged(type.shape, most_axes)) : made.inputs.back());
  }
  made.results = apply(made.tape, op, {operands.begin(), operands.end()}, attributes);
  Vars outputs, wanted;
  for (const Var& result : made.results)
    if (is_floating(result.dtype())) outputs.push_back(result);
  for (const Var& input : made.inputs)
    if (is_floating(input.dtype())) wanted.push_back(input);
  if (!outputs.empty() && !wanted.empty())
    for (const Var& gradient : grad(outputs, wanted, {}, {.materialize_grads = true, .sum_outputs = true}))
      made.results.push_back(gradient);
  return made;
}

/// The number of elements of all values on the tape. Checks that no size is negative and no value has 2^63 or more
/// bytes.
double elements_of(const Tape& tape) {
  double elements = 0;
  for (std::size_t i = 0; i < tape.size(); ++i)
    for (const ValueType& type : tape.node(i).outputs) {
      long double bytes = static_cast<long double>(size_of(type.dtype)),
                  count = 1;  // long double has 64 bits of precision
      for (const std::int64_t size : type.shape) {
        CHECK(size >= 0);
        count *= static_cast<long double>(size);
        if (size > 0) bytes *= static_cast<long double>(size);
      }
      CHECK(bytes < 0x1p63L);
      elements += static_cast<double>(count);
    }
  return elements;
}

/// Plays by both paths. Either both play and agree, or both throw an Error. Returns whether they play.
bool play(const Recorded& made) {
  std::vector<Array> values;
  std::vector<Feed> feeds;
  for (const Var& input : made.inputs) values.emplace_back(input.dtype(), input.shape());
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::int64_t k = 0; k < values[i].count() && values[i].dtype() == f32; ++k)
      values[i].as<float>()[k] = made.inputs[i].rank() == 0 ? 4.f : 0.25f * static_cast<float>(1 + k % 7);
    feeds.emplace_back(made.inputs[i], values[i]);
  }
  std::vector<std::vector<Doubles>> played;
  for (const bool reference : {false, true}) {
    PlayerOptions options;
    options.threads = 1;
    if (reference) options.passes = Passes::reference();
    try {
      Player player(made.tape, made.results, options);
      player.play(feeds);
      played.emplace_back();
      for (const Var& result : made.results) played.back().push_back(as_doubles(player.view(result)));
    } catch (const Error&) {
    }
  }
  CHECK(played.size() != 1);
  if (played.size() < 2) return false;
  for (std::size_t i = 0; i < played[0].size(); ++i) CHECK(near(played[0][i], played[1][i], 1e-4));  // tolerance of float32
  return true;
}

bool has_numbers(AttributeType type) {
  return type == AttributeType::integer || type == AttributeType::integers || type == AttributeType::named_sizes;
}
}  // namespace

TEST_CASE("every op refuses extreme attributes, or records types that arrays can have") {
  int all_slots = 0, kept = 0, played = 0;
  for (const auto& entry : builtin_ops().ops()) {
    const Op* row = entry.second;
    CAPTURE(row->name);
    const Sample sample = sample_of(*row);
    int slots = 0;
    for (const AttributeSpec& spec : row->attributes) {
      if (!has_numbers(spec.type) || row->name == "scan") continue;
      const Attribute* base = sample.attributes.find(spec.name);
      INFO("an attribute without a default needs a sample");
      REQUIRE(base != nullptr);
      for (const Attribute& changed : with_extremes(*base)) {
        ++slots;
        Attributes attributes = sample.attributes;
        attributes.set(spec.name, changed);
        CAPTURE(spec.name);
        CAPTURE(to_string(changed));
        for (const bool large : {false, true}) {
          CAPTURE(large);
          try {
            const Recorded made = recorded(*row, sample.inputs, attributes, large);
            ++kept;
            const double elements = elements_of(made.tape);
            if (!large && elements < 1e5)
              played += play(made);
            else if (!made.results.empty())
              Player(made.tape, made.results);  // either plans or throws Error
          } catch (const Error&) {
          } catch (const std::exception& error) {
            FAIL_CHECK("not an Error of ours: " << error.what());
          }
        }
      }
    }
    if (slots > 0) CHECK(play(recorded(*row, sample.inputs, sample.attributes, false)));  // the sample itself is valid
    all_slots += slots;
  }
  CHECK(all_slots > 700);
  CHECK(kept > all_slots / 4);  // of twice as many calls
  CHECK(played > 150);
}

TEST_CASE("every op refuses operands of other ranks, or records types that arrays can have") {
  int kept = 0, refused = 0;
  for (const auto& entry : builtin_ops().ops()) {
    const Op* row = entry.second;
    CAPTURE(row->name);
    if (row->name == "scan") continue;  // it needs a body
    const Sample sample = sample_of(*row);
    for (std::size_t k = 0; k < sample.inputs.size(); ++k)
      for (const Shape& shape : {Shape{}, Shape{3}, Shape{3, 3}, Shape{3, 3, 3}, Shape{2, 3, 3, 3}, Shape{0}, Shape{2, 0}}) {
        Types inputs = sample.inputs;
        inputs[k].shape = shape;
        CAPTURE(k);
        CAPTURE(to_string(inputs[k]));
        try {
          elements_of(recorded(*row, inputs, sample.attributes, false).tape);
          ++kept;
        } catch (const Error&) {
          ++refused;
        } catch (const std::exception& error) {
          FAIL_CHECK("not an Error of ours: " << error.what());
        }
      }
  }
  CHECK(kept > 400);
  CHECK(refused > 400);
}
