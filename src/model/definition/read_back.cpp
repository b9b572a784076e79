#include "model/definition/read_back.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <optional>
#include <random>

#include "base/arrays/visit.hpp"
#include "model/hugging_face/adapter.hpp"
#include "model/hugging_face/folder.hpp"
#include "tape/node_text.hpp"
#include "xtape/hugging_face.hpp"
#include "xtape/ops.hpp"

namespace xtape::model {

namespace {
constexpr double tolerance = 1e-4;  // for distance(); merging adapters into weights rounds them once more

/// The sizes of a play that compares two models. `tokens` is the number of different tokens; 0 means one for each class
/// of the result.
struct Trial {
  std::int64_t length, tokens;
};
// The best comparison comes first. The later ones also work for models with few positions or with inputs that are not
// tokens.
constexpr Trial trials[] = {{32, 0}, {8, 0}, {8, 2}, {2, 2}, {1, 1}};

constexpr std::int64_t longest_recorded = std::int64_t{1} << 20;  // in tokens

/// Returns an array for an input. Integers are random tokens below `tokens`, and floats are normal random numbers.
/// Flags are all false.
Array drawn(const ValueType& type, std::int64_t tokens, std::mt19937_64& random) {
  Array array(type.dtype, type.shape);
  std::normal_distribution<double> normal;
  visit_elements(array, [&]<class T>(T* elements) {
    if constexpr (std::is_same_v<T, bool>) return;  // flags are all false
    std::generate(elements, elements + array.count(), [&] {
      return is_floating(type.dtype) ? static_cast<T>(normal(random))
                                     : static_cast<T>(random() % static_cast<std::uint64_t>(tokens));
    });
  });
  return array;
}

/// The record of one play of a function.
struct Played {
  std::string function;
  Trial trial;
  Store inputs;
  Array result;
};

/// Returns the named sizes of a function. The first size, such as the batch, is 2. The other sizes are about
/// `length`.
NamedSizes sizes_of(const Model& model, const std::string& function, std::int64_t length) {
  NamedSizes sizes;
  std::int64_t next = std::min<std::int64_t>(length, 2);
  for (const std::string& name : model.signature(function).sizes) {
    sizes.add(name, next);
    next = std::max<std::int64_t>(1, sizes.size() == 1 ? length : next - 1);
  }
  return sizes;
}

/// Plays a function and returns its first result. `given` contains the inputs. If it is empty, the inputs are random.
Played played(const Model& model, const std::string& function, const Trial& trial, const Store& given) {
  Tape tape(Mode::eval);
  const NamedVars inputs = model.inputs(tape, function, sizes_of(model, function, trial.length));
  const Var result = model.record(tape, function, inputs)[0].value;
  const std::int64_t classes = result.rank() == 0 ? 1 : result.shape()[result.rank() - 1];
  std::mt19937_64 random(1);
  Played play{function, trial, given, {}};
  std::vector<Feed> feeds;
  for (const auto& [name, var] : inputs) {
    if (given.empty()) play.inputs.add(name, drawn(var.type(), trial.tokens > 0 ? trial.tokens : classes, random));
    feeds.push_back({var, play.inputs.at(name)});
  }
  play.result = evaluate(result, feeds);
  return play;
}

/// Returns the play of the first function that can be played on random inputs. Tries `logits` first. The result is
/// empty if there is no such function. A function may require more of its inputs than their types say.
std::optional<Played> first_played(const Model& model) {
  std::vector<std::string> functions = model.functions();
  std::stable_partition(functions.begin(), functions.end(), [](const auto& name) { return name == "logits"; });
  for (const std::string& function : functions)
    for (const Trial& trial : trials) {
      try {
        return played(model, function, trial, {});
      } catch (const Error&) {  // the next trial or function may work
      }
    }
  return std::nullopt;
}

/// Returns norm(b - a) / norm(a). It is 0 if both arrays have the same bits.
double distance(const Array& a, const Array& b) {
  if (a.bytes() == b.bytes() && std::memcmp(a.data(), b.data(), a.bytes()) == 0) return 0;
  Tape tape;
  const auto numbers = [&](const Array& array) { return evaluate(cast(tape.constant(array), Dtype::float64)); };
  const Array first = numbers(a), second = numbers(b);
  double difference = 0, norm = 0;
  for (std::int64_t i = 0; i < first.count(); ++i) {
    const double x = first.as<double>()[i], y = second.as<double>()[i];
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;  // also skips infinities, which masks contain
    difference += (x - y) * (x - y);
  }
  for (std::int64_t i = 0; i < first.count(); ++i)
    if (const double x = first.as<double>()[i]; std::isfinite(x)) norm += x * x;
  return difference == 0 ? 0 : std::sqrt(difference / norm);
}

/// Throws FileError if the arrays differ too much. The message says what differs and calls the arrays `what`.
void require_same(const std::string& what, const Array& before, const Array& after, const std::string& on) {
  const ValueType of_model{before.dtype(), before.shape()}, of_folder{after.dtype(), after.shape()};
  if (of_model != of_folder)
    throw FileError(what + " is " + to_string(of_folder) + ", that of the model " + to_string(of_model));
  const double off = distance(before, after);
  if (off <= tolerance) return;
  char percent[32];
  std::snprintf(percent, sizeof percent, "%.2g %%", 100 * off);
  throw FileError(what + " differs by " + percent + on);
}

void require_same_weights(const Model& before, const Model& after) {
  const Store ours = before.exported_weights(), theirs = after.exported_weights();
  for (const auto& [name, weight] : ours) require_same("weight '" + name + "'", weight, theirs.at(name), "");
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

/// Options to open a folder with the weights of the model, or its base. The files of the model have its blocks, the
/// base may have floats.
ModelOptions options_like(const Model& model, bool is_base) {
  ModelOptions options;
  options.dtype = model.dtype();
  options.ops = model.ops();
  for (const Store::Entry& entry : model.weights())
    if (const Dtype dtype = entry.value.dtype(); dtype != model.dtype() && (is_base || !is_block(dtype)))
      options.weights.add(entry.name, dtype);
  return options;
}

Model opened(const Model& model, const std::string& folder, const std::string& definition, const std::string& adapter) {
  const ModelOptions options = options_like(model, !adapter.empty());
  try {
    find_definition(definition);
  } catch (const FileError&) {
    return open_hugging_face_with(model.definition_text(), model.name(), folder, options, adapter);
  }
  return open_hugging_face(folder, options, "", {}, adapter);
}
}  // namespace

std::optional<std::set<std::string>> weights_read_by(const Model& model, const std::string& function) {
  for (const Trial& trial : trials) {
    try {
      Tape tape(Mode::eval);
      model.record(tape, function, model.inputs(tape, function, sizes_of(model, function, trial.length)));
      std::set<std::string> names;
      for (std::size_t i = 0; i < tape.size(); ++i)
        if (tape.node(i).op == &parameter_op()) names.insert(tape.node(i).name);
      return names;
    } catch (const Error&) {  // the function may need other sizes
    }
  }
  return std::nullopt;
}

void require_same_computation(const Model& model, const Model& other, const std::string& function,
                              const std::string& of_other) {
  const auto recorded = [&](const Model& each, std::int64_t length) {
    Tape tape(Mode::eval);
    each.record(tape, function, each.inputs(tape, function, sizes_of(each, function, length)));
    return tape;
  };
  std::optional<Tape> ours;
  std::int64_t length = longest_recorded;
  while (!ours) {
    try {
      ours.emplace(recorded(model, length));
    } catch (const Error&) {
      if (length == 1) throw;
      length /= 2;
    }
  }
  const std::string difference = first_difference(recorded(other, length), *ours);
  if (!difference.empty())
    throw FileError("'" + function + "' computes something else " + of_other +
                    " (first) than in the model (second):\n" + difference);
}

Model read_back(const Model& model, const std::string& folder, const std::string& name, const std::string& model_type,
                const std::string& base) {
  const std::string differs =
      "read back " + (base.empty() ? "" : "on '" + base + "' ") + "it is not model '" + model.name() + "': ";
  try {
    Model again =
        base.empty() ? opened(model, folder, model_type, "") : opened(model, base, model_type + adapter_suffix, folder);
    if (const std::optional<Played> before = first_played(model)) {
      const Played after = played(again, before->function, before->trial, before->inputs);
      require_same("'" + before->function + "'", before->result, after.result, " on random tokens");
      if (!base.empty()) {
        ModelOptions options = options_like(model, true);
        options.initialise = false;
        const Model of_base = open_hugging_face_with(model.definition_text(), model.name(), base, options, folder);
        require_same_computation(model, of_base, before->function, "with the base");
      }
    } else {
      require_same_weights(model, again);
    }
    return again;
  } catch (const Error& error) {
    throw NotReadBack("'" + name + "' is not written, because ", differs + replaced(error.what(), folder, name));
  }
}

}  // namespace xtape::model
