/// The table of ONNX operators. It specifies how to record each operator with xtape's ops.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "onnx/messages.hpp"
#include "xtape/tape.hpp"

namespace xtape::onnx {

// A call of an ONNX operator during recording. The functions of the table (operators.hpp) read their operands and
// attributes from it.

using Integers = std::vector<std::int64_t>;

/// The settings that are the same for all nodes of a model.
struct Setting {
  std::int64_t opset = 0;
  std::optional<Dtype> floats = std::nullopt;  ///< OnnxOptions::floats.
};

/// Returns `array` with the dtype that the setting chooses for floats.
Array with_floats(Array array, const Setting& setting);
/// Records a constant of a file. The program holds no var of it, so a number is a literal.
Var constant_of(Tape tape, const Array& array);
/// Returns the dtype for an element type, with the setting's dtype for floats.
Dtype dtype_in(std::int64_t element, const Setting& setting, const std::string& what);

/// A value, and its element type in the file if xtape holds that in a wider dtype.
struct Typed {
  Var var;
  Element element = Element::none;
};
using TypedVars = std::vector<Typed>;

/// The least and the greatest number of an integer type that xtape lacks. Returns nothing for other types.
std::optional<std::pair<std::int64_t, std::int64_t>> range_of(Element element);
/// Wraps integers to the range of their type.
Var wrapped(const Typed& value);

/// Records a graph inside a node with the given inputs and returns its outputs.
using RecordGraph = std::function<Vars(const Graph& graph, const Vars& inputs)>;

/// A node with the vars of its inputs. The functions of operators mark as read every attribute and input that they use.
/// An attribute or input that is not marked is an error, so that nothing is silently ignored.
class NodeCall {
 public:
  NodeCall(const Node& node, const Setting& setting, Tape tape, const TypedVars& inputs, RecordGraph record);

  std::int64_t opset() const { return setting_.opset; }
  const Setting& setting() const { return setting_; }
  Tape tape() const { return tape_; }
  const std::string& op() const { return node_.op; }
  std::size_t outputs() const { return node_.outputs.size(); }
  /// Returns whether the node names output i. Only then can other nodes read it.
  bool gives(std::size_t i) const { return i < outputs() && !node_.outputs[i].empty(); }

  // Inputs.
  std::size_t size() const { return inputs_.size(); }
  bool has(std::size_t i) const { return i < inputs_.size() && !inputs_[i].empty(); }
  const Var& at(std::size_t i);  ///< Throws Error if the input is missing.
  Var optional(std::size_t i);   ///< Empty if the input is missing.
  const Vars& all();             ///< Throws Error if there are no inputs or one is missing.
  Array known(std::size_t i);    ///< The value of an input. Throws Error if it is not known at record time.
  Integers known_integers(std::size_t i);
  std::vector<double> known_numbers(std::size_t i);
  // Returns the value of an array of one element. Throws Error if it has more or fewer elements.
  std::int64_t known_integer(std::size_t i);
  double known_number(std::size_t i);
  /// Returns the value of a var of one element. Throws Error, with the name `what`, if the value is not known at record
  /// time.
  std::int64_t known_integer(const Var& var, const std::string& what);

  // Element types of the file.
  Element element(std::size_t i) const { return elements_[i]; }  ///< Of an input that the node has.
  void set_element(std::size_t output, Element element);
  void set_elements(const Graph& graph, std::size_t from);  ///< The types of the outputs of a graph, from one on.
  Element element_of_output(std::size_t i) const { return i < given_.size() ? given_[i] : Element::none; }

  // Attributes by name. The functions throw Error if the type is wrong, or if the attribute is missing and has no
  // default.
  bool has(const std::string& name) const { return node_.attributes.count(name) != 0; }
  std::int64_t integer(const std::string& name, std::optional<std::int64_t> otherwise = std::nullopt);
  bool flag(const std::string& name, bool otherwise);  ///< Throws Error if the integer is neither 0 nor 1.
  double real(const std::string& name, std::optional<double> otherwise = std::nullopt);
  std::string text(const std::string& name, const std::string& otherwise);
  Integers integers(const std::string& name, const std::optional<Integers>& otherwise = std::nullopt);
  Array array(const std::string& name);  ///< The array becomes the first output.
  std::vector<double> reals(const std::string& name);
  std::vector<std::string> texts(const std::string& name);
  /// Records the graph of an attribute.
  Vars record(const std::string& name, const Vars& inputs);
  const Graph& graph(const std::string& name);
  /// Marks as read an attribute that does not change the result.
  void ignore(const std::string& name) { read_attributes_.insert(name); }
  /// Returns integers that are an attribute in older versions and an input in newer versions. Returns nothing if both
  /// are missing.
  std::optional<Integers> integers(const std::string& name, std::size_t input);

  /// Throws Error if the function left an input or attribute unread, or if the node has more outputs than `results`.
  void finish(std::size_t results) const;
  [[noreturn]] void fail(const std::string& message) const;  ///< Throws Error.

 private:
  Array known(const Var& var, const std::string& what);
  Array known_one(std::size_t i);
  const Attribute* find(const std::string& name, Attribute::Type type);

  const Node& node_;
  const Setting& setting_;
  Tape tape_;
  Vars inputs_;
  std::vector<Element> elements_, given_;  // of the inputs; of the outputs
  RecordGraph record_;
  std::set<std::string> read_attributes_;
  std::set<std::size_t> read_inputs_;
};

/// The most numbers of a constant that is made while recording, because a damaged file may ask for any number.
constexpr std::int64_t most_numbers = 1 << 24;

/// Returns integers as a constant of the tape with one axis.
Var constant_integers(const Tape& tape, const Integers& numbers);

/// Returns x in a dtype for formulas with fractions and squares: half precision as float32, integers and bool as
/// float64, which is exact up to 2^53.
Var wide(const Var& x);
/// Returns floats in a dtype that holds all of them. Empty vars stay empty.
Vars in_one_dtype(Vars xs);

/// Records a call and returns its outputs. Trailing outputs that the node does not name may be missing.
using Function = Vars (*)(NodeCall& node);

/// For Operator::like: the function determines the dtype of the first output.
constexpr std::size_t own = static_cast<std::size_t>(-1);

struct Operator {
  const char* name;
  Function function;
  /// The input whose dtype the first output has. The output is converted if the function returns another dtype.
  std::size_t like = 0;
  bool can_leave_range = false;  ///< Whether integers of the first output must be wrapped to the range of their type.
};
constexpr bool wraps = true;  ///< For Operator::can_leave_range.
using Operators = std::vector<Operator>;

// There is one function for each family, in the file of the same name.
const Operators& attention_operators();
const Operators& elementwise_operators();
const Operators& constant_operators();
const Operators& control_operators();
const Operators& reduction_operators();
const Operators& shape_operators();
const Operators& indexing_operators();
const Operators& product_operators();
const Operators& norm_operators();
const Operators& recurrent_operators();
const Operators& resampling_operators();

/// Returns an operator, or null if xtape lacks it.
const Operator* find_operator(const std::string& name);
/// Returns all names in alphabetical order.
std::vector<std::string> operator_names();

// The common attributes of convolutions and pools over spatial axes.

/// Each list has one number for each spatial axis.
struct Spatial {
  Integers kernel, stride, dilation, before, after;
  std::size_t axes() const { return kernel.size(); }
  bool symmetric() const { return before == after; }
  /// Returns the extent of a window in elements of the input.
  std::int64_t reach(std::size_t i) const { return dilation[i] * (kernel[i] - 1) + 1; }
};

/// Reads kernel_shape (by default `kernel`), strides, dilations, pads and auto_pad. `sizes` are the sizes of the
/// spatial axes.
Spatial spatial_of(NodeCall& node, const Integers& sizes, const Integers& kernel = {});

/// Returns the sizes of the axes from the third axis on.
Integers spatial_sizes(const Var& x);

/// Pads x [b, c, …] with `value`, adds `more` at the end, and cuts the result into windows: [b, c, windows…,
/// elements…].
Var windows_of(Var x, const Spatial& spatial, const Literal& value, const Integers& more = {});

}  // namespace xtape::onnx
