/// The evals of GradBench (https://github.com/gradbench/gradbench), a benchmark of automatic differentiation: what
/// their programs share.
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

/// The input of a function: its fields, and the tape on which the function records.
struct Input {
  const json& fields;
  Tape tape{Dtype::float64};

  std::int64_t number(const char* field) const { return fields.at(field).get<std::int64_t>(); }
  /// A list of numbers, or of such lists, as a parameter of the tape.
  Var array(const char* field) { return array(fields.at(field), field); }
  Var array(const json& values, const char* name);
  Var indices(const json& values, const char* name);  ///< The same as int32.
};

/// What a function computes: vars, and the answer that is made of their arrays.
struct Result {
  using Answer = std::function<json(const std::vector<ArrayView>&)>;
  Result(const Var& var);          // NOLINT: converts by intent
  Result(const NamedVars& named);  // NOLINT: converts by intent
  Result(Vars computed, Answer made) : vars(std::move(computed)), answer(std::move(made)) {}
  Vars vars;
  Answer answer;
};
json listed(const ArrayView& array);  ///< As nested lists.

/// What f returns for blocks of `rows` rows of the arrays x, joined along the first axis. The blocks are computed one
/// after the other, so that what f computes in between stays in the cache.
Vars in_blocks(const std::function<Vars(const Vars&)>& f, const Vars& x, std::int64_t rows);

using Functions = std::map<std::string, std::function<Result(Input&)>>;  ///< The functions of an eval by their names.
Functions ba(), det(), gmm(), hello(), ht(), kmeans(), llsq(), lse(), lstm(), ode(), particle(), saddle();

}  // namespace gradbench
