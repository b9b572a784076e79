/// Shared code of the programs for GradBench (https://github.com/gradbench/gradbench), a benchmark of automatic
/// differentiation.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>
#include <xtape/core.hpp>

namespace gradbench {
using namespace xtape;
using json = nlohmann::json;

/// The input of a function: its fields, and the tape for recording.
struct Input {
  const json& fields;
  Tape tape{Dtype::float64};

  std::int64_t number(const char* field) const { return fields.at(field).get<std::int64_t>(); }
  /// Records a list of numbers, or a nested list, as a parameter of the tape.
  Var array(const char* field) { return array(fields.at(field), field); }
  Var array(const json& values, const char* name);
  Var indices(const json& values, const char* name);  ///< Like `array`, but int32.
};

/// The result of a function of GradBench: vars, and `answer`, which converts their arrays to the answer.
struct Result {
  using Answer = std::function<json(const std::vector<ArrayView>&)>;
  Result(const Var& var);          // NOLINT: converts by intent
  Result(const NamedVars& named);  // NOLINT: converts by intent
  Result(Vars computed, Answer made) : vars(std::move(computed)), answer(std::move(made)) {}
  Vars vars;
  Answer answer;
};
json listed(const ArrayView& array);  ///< The array as nested lists.

/// Applies f to blocks of `rows` rows of the arrays x, and joins the results along the first axis. The blocks are
/// computed one after the other, so that the intermediate values of f stay in the cache.
Vars in_blocks(const std::function<Vars(const Vars&)>& f, const Vars& x, std::int64_t rows);

using Functions = std::map<std::string, std::function<Result(Input&)>>;  ///< The functions of an eval by name.
Functions ba(), det(), gmm(), hello(), ht(), kmeans(), llsq(), lse(), lstm(), ode(), particle(), saddle();

}  // namespace gradbench
