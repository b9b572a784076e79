// Every op of the table with extreme numbers in every element of its integer attributes, on small arrays and on
// broadcasts of very many elements. A call is either recorded with types that arrays can have or refused with an Error.
// Small results are also played.
#include <doctest/doctest.h>

#include <array>
#include <limits>

#include "op_samples.hpp"
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
using namespace op_samples;

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
  for (std::size_t i = 0; i < played[0].size(); ++i)
    CHECK(near(played[0][i], played[1][i], 1e-4));  // tolerance of float32
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
      for (const Shape& shape :
           {Shape{}, Shape{3}, Shape{3, 3}, Shape{3, 3, 3}, Shape{2, 3, 3, 3}, Shape{0}, Shape{2, 0}}) {
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
