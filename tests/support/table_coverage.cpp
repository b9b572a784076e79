// The last test cases of the ops suite, because doctest orders files by path. They look at each op of the table, and at
// what all other cases have covered. One message has everything that an op lacks.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "cases.hpp"
#include "golden.hpp"
#include "gradient_coverage.hpp"
#include "op_samples.hpp"
#include "source_root.hpp"
#include "xtape/op/op.hpp"

using namespace xtape;

namespace {
/// Why ops have no cases of PyTorch. Random ops and gradients (NAME_grad) need no reason.
const std::map<std::string, std::set<std::string>>& reasons() {
  static const std::map<std::string, std::set<std::string>> table{
      {"its draws are our own", {"choice", "dropout", "multivariate_normal", "permutation"}},
      {"recorded by gradients, whose cases play it",
       {"einsum_add", "gammaincinv", "index_reduce", "lu_solve", "poisson_quantile", "product_cross_entropy",
        "scatter_elements"}},
      {"signs of vectors differ from those of LAPACK", {"eigh", "svd"}},
      {"PyTorch has no such op",
       {"cache", "causal_mask", "checked_indices", "checked_weights", "crf_decode", "crf_log_partition", "crf_loss",
        "crf_score", "dequantize", "dequantize_blocks", "positions", "rearrange", "root_of_squares", "shift_right",
        "stop_gradient", "watch"}}};
  return table;
}

bool has_reason(const Op& op) {
  return std::ranges::any_of(reasons(), [&](const auto& reason) { return reason.second.count(op.name) == 1; });
}

/// What the entry of an op lacks, or has wrong.
class Entry {
 public:
  explicit Entry(const Op& op) : op_(op) {}

  std::vector<std::string> lacks() {
    check(op_.doc.size() >= 3 && (op_.doc.back() == '.' || op_.doc.back() == ')'), "a doc: a formula or sentences");
    check(static_cast<bool>(op_.shape), "a shape rule");
    check_inputs();
    std::set<std::string> names;
    for (const AttributeSpec& attribute : op_.attributes) {
      const std::string which = "attribute '" + attribute.name + "' with ";
      check(names.insert(attribute.name).second, which + "a name of its own");
      check(attribute.doc.size() >= 5, which + "a doc");
      check(!attribute.initial || fits(attribute.type, *attribute.initial), which + "a default of its type");
    }
    check(!op_.outputs.empty() && op_.derivative.kept < op_.outputs.size(), "an output that callers get");
    const Lowering& lowering = op_.lowering;
    const int ways = (lowering.kernel ? 1 : 0) + (lowering.tile ? 1 : 0) + (lowering.view ? 1 : 0);
    check(ways == 1 || (ways == 0 && op_.expand), "one of kernel, tile and view, or `expand`");
    for (const int input : lowering.overwrites)
      check(lowering.kernel && input >= 0 && input < std::ssize(op_.inputs), "a kernel and inputs that it overwrites");
    if (op_.inputs.empty() || !op_.differentiable)
      check(!op_.gradient, "inputs, and `differentiable`, for its gradient");
    else
      check(op_.gradient || op_.expand, "a gradient or `expand`, or `differentiable = false`");
    return std::move(lacks_);
  }

 private:
  void check(bool fulfilled, const std::string& what) {
    if (!fulfilled) lacks_.push_back(what);
  }
  void check_inputs() {
    std::set<std::string> names;
    bool last = false;
    for (const InputSpec& input : op_.inputs) {
      check(names.insert(input.name).second, "an own name for each input");
      check(!last || input.arity == Arity::optional, "optional inputs, or one input with many operands, at the end");
      last = last || input.arity != Arity::one;
    }
  }
  static bool fits(AttributeType type, const Attribute& initial) {
    switch (type) {
      case AttributeType::boolean:
        return std::holds_alternative<bool>(initial);
      case AttributeType::integer:
        return std::holds_alternative<std::int64_t>(initial);
      case AttributeType::number:
      case AttributeType::element:
        return std::holds_alternative<double>(initial);
      case AttributeType::text:
        return std::holds_alternative<std::string>(initial);
      case AttributeType::integers:
        return std::holds_alternative<std::vector<std::int64_t>>(initial);
      case AttributeType::dtype:
        return initial == Attribute{std::string("float")} || std::holds_alternative<Dtype>(initial);
      default:
        return std::holds_alternative<NamedSizes>(initial);
    }
  }

  const Op& op_;
  std::vector<std::string> lacks_;
};

/// The text of the pages of docs/reference/ops.
const std::string& pages() {
  static const std::string text = [] {
    std::ostringstream all;
    for (const auto& page : std::filesystem::directory_iterator(source_root() + "/docs/reference/ops"))
      all << std::ifstream(page.path()).rdbuf();
    return all.str();
  }();
  return text;
}

bool has_page(const Op& op) {
  if (op.doc.empty() || !op.shape) return false;
  OpTable one;
  one.add(op);
  std::ostringstream printed;
  write_reference(one, printed);
  return pages().find(printed.str().substr(printed.str().find("\n## "))) != std::string::npos;
}

/// Everything that an op lacks, and what to do about it.
std::vector<std::string> lacks(const Op& op) {
  std::vector<std::string> all = Entry(op).lacks();
  const std::string start = "op " + op.name + ":";
  if (std::ranges::none_of(cases_started(), [&](const std::string& title) { return title.starts_with(start); }))
    all.push_back("a test case titled '" + start + " …', in tests/ops");
  // An op that is always recorded as other ops has no node through which a cotangent could flow.
  const bool leaves_no_node = op.record && !op.lowering.kernel && !op.lowering.tile && !op.lowering.view;
  if (op.differentiable && !leaves_no_node && !op.inputs.empty() && gradient_checked_ops().count(op.name) == 0)
    all.push_back("a gradcheck that passed, in its tests");
  static const std::map<std::string, int> golden = count_golden();
  const auto found = golden.find(op.name);
  const bool enough = found != golden.end() && found->second >= 20;
  if (enough ? has_reason(op) : !(has_reason(op) || op.random || op.name.ends_with("_grad")))
    all.push_back(
        "20 cases of PyTorch in tests/golden/scripts/many, or else a reason in tests/support/table_coverage.cpp");
  if (!op.shape || !op_samples::find_sample(op))
    all.push_back("a valid call: trials find none, so add a row to tests/support/op_samples.hpp");
  if (!has_page(op)) all.push_back("a page in docs/reference/ops as it is: python3 tests/docs/reference.py .");
  return all;
}

std::string listed(const Op& op) {
  std::string text;
  for (const std::string& each : lacks(op)) text += "\n  - " + each;
  return text.empty() ? "" : "op '" + op.name + "' lacks (run the whole suite):" + text;
}
}  // namespace

TEST_CASE("every op of the table is complete") {
  REQUIRE(builtin_ops().ops().size() >= 60);
  for (const auto& entry : builtin_ops().ops()) {
    const std::string missing = listed(*entry.second);
    CHECK_MESSAGE(missing.empty(), missing);
  }
}

TEST_CASE("one message has everything that an op lacks") {
  Op bare;
  bare.name = "bare";
  bare.inputs = {{"x", Accept::floating, Arity::optional}, {"x"}};
  bare.attributes = {{"n", AttributeType::integer, "", 0.5}};
  CHECK(listed(bare) == R"(op 'bare' lacks (run the whole suite):
  - a doc: a formula or sentences
  - a shape rule
  - an own name for each input
  - optional inputs, or one input with many operands, at the end
  - attribute 'n' with a doc
  - attribute 'n' with a default of its type
  - one of kernel, tile and view, or `expand`
  - a gradient or `expand`, or `differentiable = false`
  - a test case titled 'op bare: …', in tests/ops
  - a gradcheck that passed, in its tests
  - 20 cases of PyTorch in tests/golden/scripts/many, or else a reason in tests/support/table_coverage.cpp
  - a valid call: trials find none, so add a row to tests/support/op_samples.hpp
  - a page in docs/reference/ops as it is: python3 tests/docs/reference.py .)");
}
