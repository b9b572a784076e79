/// Evaluates lines of a definition. Computes sizes, flags and texts at once, and records ops on a tape for vars.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/language/visible_names.hpp"
#include "model/recording/module.hpp"
#include "xtape/model.hpp"

namespace xtape::model {

/// The names that are visible to a line.
struct Environment {
  const Definition* home = nullptr;    ///< Its hyper-parameters are visible.
  const Module* module = nullptr;      ///< Its parameters, weights and modules are visible. Null for hyper-parameters.
  bool in_function = false;            ///< Whether the model's functions can be called.
  Values locals = {};                  ///< Inputs, sizes and assigned names.
  const Environment* outer = nullptr;  ///< In a comprehension, the environment around it, whose locals are visible.

  /// Returns the local of this name, or null if there is none.
  const Value* local(const std::string& name) const {
    if (const auto found = locals.find(name); found != locals.end()) return &found->second;
    return outer == nullptr ? nullptr : outer->local(name);
  }
};

/// The argument values of a call, with their columns in the line.
struct Arguments {
  struct Positional {
    Value value;
    std::size_t column = 0;
  };
  struct Named {
    std::string name;
    std::size_t column = 0;
    Value value;
  };
  std::vector<Positional> positional;
  std::vector<Named> named;
};

class Interpreter {
 public:
  /// If there is no tape, only expressions without vars can be evaluated. Keeps references to `context` and `root`.
  explicit Interpreter(const ModelContext& context, std::optional<Tape> tape = std::nullopt,
                       const Module* root = nullptr)
      : context_(context), tape_(std::move(tape)), root_(root) {}

  Value evaluate(const Line& line, const Environment& environment);
  /// Evaluates a line. Throws DefinitionError if the value does not have this type.
  std::int64_t integer(const Line& line, const Environment& environment);
  double number(const Line& line, const Environment& environment);
  bool flag(const Line& line, const Environment& environment);
  /// Returns whether `name` has a value in `environment`. Weights, modules and pi do not count.
  bool knows(const std::string& name, const Environment& environment) const;

  /// Throws DefinitionError if a call of is_named has asked for a name that no calling module has.
  void check_asked_names() const;

  /// Records a function of the model. Throws ShapeError, DtypeError or Error if the arguments do not fit its inputs.
  Value call_function(const Function& function, const Arguments& arguments);

  RecordedLines recorded_lines() const;  ///< The lines of the functions recorded so far.

 private:
  /// A line to evaluate, and its environment.
  struct At {
    const Line& line;
    const Environment& environment;
  };
  /// Evaluates an expression. Counts it, and the elements of its value, as steps. ModelOptions::max_steps limits the
  /// number of steps.
  Value visit(const Expression& expression, const At& at);
  VisibleNames names_in(const Environment& environment) const;
  Value value_of(const Expression& expression, const At& at);
  Value name(const Expression& expression, const At& at);
  Value attribute(const Expression& expression, const At& at);
  Value attribute_of(const Value& object, const Expression& expression, const At& at);
  Value attribute_of_each(const Tuple& objects, const Expression& expression, const At& at);
  Value assigned(const Module& module, const Expression& expression, const At& at) const;
  Value index(const Expression& expression, const At& at);
  Value index_list(const Value& object, const Expression& expression, const At& at);
  AxisIndex index_range(const Expression& expression, const At& at);
  std::int64_t index_integer(const Expression& expression, std::int64_t otherwise, const At& at);
  Value chain(const Expression& expression, const At& at);
  bool holds(const Expression& condition, const At& at);
  Value call(const Expression& expression, const At& at);
  Value comprehension(const Expression& expression, const At& at);
  /// Evaluates an expression whose elements are wanted. The error for a value without elements begins with `what`.
  Tuple elements(const Expression& expression, const std::string& what, const At& at);
  /// Assigns a value to the targets of a line or of a comprehension.
  void assign(const std::vector<Target>& targets, bool unpacks, const Value& value, const At& at, Values& locals);
  /// Calls a module, a function of the model or an op. `column` is the place of the call in the line.
  Value call_value(const Value& callee, std::size_t column, const Arguments& arguments, const At& at);
  /// Calls a function of plain values or an op. Returns nothing if there is none of this name.
  std::optional<Value> call_named(const std::string& name, std::size_t column, const Arguments& arguments,
                                  const At& at);
  Value array(std::size_t column, const Arguments& arguments, const At& at);
  Value require(const Expression& expression, const At& at);
  Value is_named(const Expression& expression, const At& at);
  std::string values_in(const Expression& expression, const At& at);
  Value scan_function(const Expression& expression, const At& at);
  Value vmap_function(const Expression& expression, const At& at);
  /// Notes the result of a call, if it is that of a module.
  Value returned(const Value& callee, const Value& result);
  Value derivative(const std::string& name, const Expression& expression, const At& at);
  Value call_op(const Op& op, std::size_t column, const Arguments& arguments, const At& at);
  Value call_module(const ModuleReference& reference, std::size_t column, Arguments arguments, const At& at);
  Value call_one(const Module& module, const ModuleSpec& spec, const Arguments& arguments, const At& at);
  Value apply_block(const Module& module, const Arguments& arguments);
  Value apply_file_block(const Module& module, const Environment& environment);
  void update_weights(const Module& module, const Environment& environment);
  Arguments arguments_of(const Expression& expression, const At& at);
  Value compute(const Computation& computation, Environment& environment, const LineScopes& scopes);
  Value weight(const Weight& weight);
  Location location_of(const At& at) const;
  [[noreturn]] void fail(const At& at, std::size_t column, const std::string& message) const;
  /// Runs `body`, which evaluates lines of another block or function. Adds the calling line `at` to errors of these
  /// lines.
  template <class Body>
  auto called(const At& at, const Body& body) {
    try {
      return body();
    } catch (const DefinitionError& error) {
      throw called_from(error, location_of(at), at.line.text);
    }
  }
  /// Runs `body`. Adds the location and a caret to errors. A DefinitionError already has both and stays unchanged.
  template <class Body>
  auto guarded(const At& at, std::size_t column, const Body& body) {
    try {
      return body();
    } catch (const DefinitionError&) {
      throw;
    } catch (const Error& error) {
      fail(at, column, error.what());
    }
  }

  const ModelContext& context_;
  std::optional<Tape> tape_;
  const Module* root_;
  std::int64_t steps_ = 0;
  std::vector<const Function*> calling_;
  /// A name for which calls of is_named ask.
  struct AskedName {
    const Line* line;    ///< The first line that asks.
    std::size_t column;  ///< The column of the call of is_named in this line.
    bool found;          ///< Whether a calling module has the name.
  };
  std::map<std::string, AskedName> asked_names_;
  std::set<std::string> asking_;  ///< The last words of the paths of modules that call is_named.
  NamedVars updates_;             ///< The new values of weights, by path.
  bool inside_ = false;           ///< Whether the recording is inside a scan, a vmap or a checkpoint.
  /// Marks the recording as inside a scan, a vmap or a checkpoint during its lifetime. The values of lines then belong
  /// to a single step or example, so the destructor discards them.
  struct Inside {
    explicit Inside(Interpreter& of) : interpreter(of), applied(of.applied_), called(of.called_), before(of.inside_) {
      of.inside_ = true;
    }
    ~Inside() {
      interpreter.applied_ = std::move(applied);
      interpreter.called_ = std::move(called);
      interpreter.inside_ = before;
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    Interpreter& interpreter;
    std::map<const Module*, Values> applied;
    std::map<const Function*, Values> called;
    bool before;
  };
  std::map<const Module*, Values> applied_;   ///< The locals of each module's last application.
  std::map<const Module*, Value> returned_;   ///< The result of each module's last application.
  std::map<const Function*, Values> called_;  ///< The locals of each function's last call.
  /// The lines of applications, as in RecordedLines.
  std::map<std::string, std::vector<std::string>> application_lines_;
};

/// Converts a value to a hyper-parameter value: a number, a flag, a text, or a tuple of these. Returns nothing for any
/// other value.
std::optional<Hyper::Value> hyper_value(const Value& value);

/// Adds the declared inputs, and the sizes that their types name, to the locals of `environment`. Their values come
/// from the arguments. Throws ShapeError, DtypeError or Error if the arguments do not fit.
void bind_inputs(const std::vector<Input>& inputs, const Arguments& arguments, Dtype model_dtype,
                 Interpreter& interpreter, Environment& environment);

struct OpCall {
  std::vector<Operand> operands;
  Attributes attributes;
};
/// The error for an argument that does not fit the op, and its column.
struct BindingError {
  std::size_t column;
  std::string message;
};
/// Returns whether the text, as an argument of `op`, names the axes of a reduction: "b t d -> b d".
bool names_axes(const Op& op, const std::string& text);
/// Returns the axes of x that a pattern such as "b t d -> b d" reduces. Throws Error.
Tuple reduction_axes(const std::string& pattern, const Var& x);
/// Returns the first argument of a call of `scan` or `vmap`: one module, a function or an op. Throws Error for any
/// other.
const Value& given_function(const std::string& caller, const Arguments& arguments);
/// Sorts the arguments of a call of `op` into operands and attributes. Throws BindingError.
OpCall bind_op(const Op& op, const Arguments& arguments);

}  // namespace xtape::model
