/// A call of an ONNX operator while it is recorded: what the functions of the table (operators.hpp) read from.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "messages.hpp"
#include "xtape/tape.hpp"

namespace xtape::onnx {

using Integers = std::vector<std::int64_t>;

/// What is the same for all nodes of a model.
struct Setting {
  std::int64_t opset = 0;
  std::optional<Dtype> floats = std::nullopt;  ///< OnnxOptions::floats.
};

/// `array` with floats as the setting says.
Array with_floats(Array array, const Setting& setting);
/// The dtype of an element type, with floats as the setting says.
Dtype dtype_in(std::int64_t element, const Setting& setting, const std::string& what);

/// Records a graph inside a node with these inputs, and returns its outputs.
using RecordGraph = std::function<Vars(const Graph& graph, const Vars& inputs)>;

/// A node with the vars of its inputs. Functions take every attribute and input that they respect; whatever is left
/// over is an error, so that nothing is silently ignored.
class NodeCall {
 public:
  NodeCall(const Node& node, const Setting& setting, Tape tape, Vars inputs, RecordGraph record);

  std::int64_t opset() const { return setting_.opset; }
  const Setting& setting() const { return setting_; }
  Tape tape() const { return tape_; }
  const std::string& op() const { return node_.op; }
  std::size_t outputs() const { return node_.outputs.size(); }
  /// Whether the node has a name for output i, so that someone may read it.
  bool gives(std::size_t i) const { return i < outputs() && !node_.outputs[i].empty(); }

  // Inputs.
  std::size_t size() const { return inputs_.size(); }
  bool has(std::size_t i) const { return i < inputs_.size() && !inputs_[i].empty(); }
  const Var& at(std::size_t i);  ///< Throws Error if it is missing.
  Var optional(std::size_t i);   ///< Empty if it is missing.
  const Vars& all();             ///< At least one, none missing; else Error.
  Array known(std::size_t i);    ///< The value of an input; Error unless it is known while recording.
  Integers known_integers(std::size_t i);
  // The value of an array of one element; else Error.
  std::int64_t known_integer(std::size_t i);
  double known_number(std::size_t i);
  /// The value of a var of one element; Error, with its name `what`, unless it is known while recording.
  std::int64_t known_integer(const Var& var, const std::string& what);

  // Attributes, by name; Error if the type is another, or if there is neither the attribute nor a default.
  bool has(const std::string& name) const { return node_.attributes.count(name) != 0; }
  std::int64_t integer(const std::string& name, std::optional<std::int64_t> otherwise = std::nullopt);
  double real(const std::string& name, std::optional<double> otherwise = std::nullopt);
  std::string text(const std::string& name, const std::string& otherwise);
  Integers integers(const std::string& name, const std::optional<Integers>& otherwise = std::nullopt);
  Array array(const std::string& name);
  std::vector<double> reals(const std::string& name);
  std::vector<std::string> texts(const std::string& name);
  /// Records the graph of an attribute.
  Vars record(const std::string& name, const Vars& inputs);
  void ignore(const std::string& name) { read_attributes_.insert(name); }  ///< What does not change the result.
  /// Integers that older versions have as an attribute and newer ones as an input; nothing if there is neither.
  std::optional<Integers> integers(const std::string& name, std::size_t input);

  /// Throws Error if the call left something over, or if the node has more outputs than `results`.
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
  RecordGraph record_;
  std::set<std::string> read_attributes_;
  std::set<std::size_t> read_inputs_;
};

/// Integers as a constant of the tape, with one axis.
Var constant_integers(const Tape& tape, const Integers& numbers);

}  // namespace xtape::onnx
