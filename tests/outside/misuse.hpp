/// A table of what public functions do with arguments that no correct program passes: objects that were moved from,
/// empty and null ones, those of another tape, and numbers out of range. Each call throws an Error of a text, or works.
#pragma once

#include <doctest/doctest.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <type_traits>
#include <vector>
#include <xtape/xtape.hpp>

namespace misuse {

using namespace xtape;

struct Row {
  std::string function;
  std::string argument;  // "moved", "empty", "null", "foreign", or what is wrong
  std::string error;     // a part of the text; empty: the call works
  std::function<void()> call;
};

template <class T>
T moved_from(T object) {
  [[maybe_unused]] const T taken = std::move(object);
  return object;  // NOLINT: this is the point
}

/// Options of which one is not the default.
template <class Options, class Value>
Options with(Value Options::*option, const std::type_identity_t<Value>& value) {
  Options options;
  options.*option = value;
  return options;
}

/// A model of tokens below 7.
inline const std::string small_model = R"json({
  "xtape": 2, "name": "small", "hyper": {"size": 7, "rate": 0.5, "word": "'a'", "flag": true},
  "model": {
    "weights": {"w": {"shape": ["size", "size"], "init": "normal"}, "s": {"shape": [], "init": "ones"}},
    "functions": {
      "logits": {"inputs": {"tokens": "int [b, t]"}, "result": "s * take(w, tokens, axis=0)"},
      "loss": {
        "inputs": {"tokens": "int [b, t]", "targets": "int [b, t]"},
        "do": ["total, count = cross_entropy(logits(tokens), targets, ignore=-1)"],
        "result": "total, count"
      },
      "flat": {"inputs": {"tokens": "int [b, t]"}, "result": "sum(logits(tokens))"}
    }
  }
})json";

inline const std::string gone = "the object was moved from";

inline std::string outcome(const Row& row) {
  try {
    row.call();
    return "works";
  } catch (const Error& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("not an Error: ") + error.what();
  }
}

/// Makes the calls of a table, each with objects of its own: a call may change them.
template <class World>
void check_rows(const std::function<std::vector<Row>(World&)>& rows_of) {
  World listed;
  const std::size_t count = rows_of(listed).size();
  std::set<std::string> seen;
  for (std::size_t i = 0; i < count; ++i) {
    World world;
    const Row row = rows_of(world)[i];
    const std::string called = row.function + " (" + row.argument + ")";
    CAPTURE(called);
    CHECK(seen.insert(called).second);
    const std::string found = outcome(row);
    CAPTURE(found);
    if (row.error.empty())
      CHECK(found == "works");
    else
      CHECK(found.find(row.error) != std::string::npos);
  }
}

/// The functions that a header declares: "CLASS::NAME", or "NAME" outside of classes. Those with a body are among them;
/// constructors and operators are not.
inline std::set<std::string> functions_of(const std::string& header) {
  std::ifstream file(std::string(XTAPE_SOURCE_ROOT) + "/include/xtape/" + header);
  REQUIRE(file);
  const std::regex begin("^(?:class|struct) (\\w+).* \\{$");
  const std::regex declaration(
      "^(?:  )?(?:\\[\\[\\w+\\]\\] )?(?:inline |static |virtual )?(?:const )?[A-Z_a-z][A-Z_a-z:<>, 0-9]*[&*]? "
      "([a-z_0-9]+)\\(");
  std::set<std::string> found;
  std::string line, of;
  bool open = true;
  std::smatch at;
  while (std::getline(file, line)) {
    if (std::regex_search(line, at, begin)) of = at[1].str() + "::";
    if (line == "};") of = "";
    if (of.empty() || line == " public:") open = true;
    if (line == " private:" || line == " protected:") open = false;
    const bool inside = line.starts_with("  ");
    if (open && inside == !of.empty() && std::regex_search(line, at, declaration) && at[1].str() != "operator")
      found.insert(of + at[1].str());
  }
  return found;
}

/// Checks that the table has every function of the headers, but for those that are `harmless`: they take nothing, or
/// any value of their types, and give something of any object.
template <class World>
void check_complete(const std::function<std::vector<Row>(World&)>& rows_of, const std::vector<std::string>& headers,
                    const std::set<std::string>& harmless, std::size_t least) {
  World world;
  std::set<std::string> listed;
  for (const Row& row : rows_of(world)) listed.insert(row.function);
  std::string missing, useless;
  std::set<std::string> declared;
  for (const std::string& header : headers) declared.merge(functions_of(header));
  for (const std::string& function : declared)
    if (listed.count(function) == 0 && harmless.count(function) == 0) missing += function + " ";
  for (const std::string& function : harmless)
    if (declared.count(function) == 0) useless += function + " ";
  CHECK(missing == "");
  CHECK(useless == "");
  CHECK(declared.size() >= least);
}

}  // namespace misuse
