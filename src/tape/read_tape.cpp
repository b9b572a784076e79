// Reads a tape from JSON text. The reader does not trust the text. It accepts only tapes that recording could have
// produced.
#include <limits>
#include <map>
#include <mutex>
#include <set>

#include "base/messages/wording.hpp"
#include "tape/calls.hpp"
#include "tape/tape_data.hpp"
#include "tape/tape_json.hpp"

namespace xtape {

namespace {
constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();

/// Runs `work` on `node`. Errors of `work` get the location of `node`, unless they already have a location.
template <class Work>
auto checked(const JsonNode& node, const Work& work) {
  try {
    return work();
  } catch (const FileError&) {
    throw;
  } catch (const Error& error) {
    node.fail(error.what());
  }
}

/// Returns a copy of the text with static lifetime, because locations keep pointers to their text.
const char* lasting(const std::string& text) {
  static std::mutex mutex;
  static std::set<std::string> texts;
  const std::lock_guard<std::mutex> lock(mutex);
  return texts.insert(text).first->c_str();
}

std::int32_t small(const JsonNode& node) {
  return static_cast<std::int32_t>(node.integer(0, most));
}

/// The value at `key`, or null if there is no such key.
std::optional<JsonNode> found(const JsonNode& node, const char* key) {
  if (!node.has(key)) return std::nullopt;
  return node.at(key);
}

ValueType type_of(const JsonNode& node) {
  node.only({"dtype", "shape"});
  ValueType type{dtype_of(node.at("dtype")), {}};
  const JsonNode shape = node.at("shape");
  checked(shape, [&] {
    for (const JsonNode& size : shape.elements())
      type.shape.push_back(size.integer(0, std::numeric_limits<std::int64_t>::max()));
  });
  return type;
}
}  // namespace

class TapeReader {
 public:
  TapeReader(const ArrayFile& arrays, const Store& weights, const OpTable* ops)
      : arrays_(arrays), weights_(weights), own_ops_(ops), ops_(ops != nullptr ? *ops : builtin_ops()) {
    for (std::size_t i = 0; i < arrays.entries().size(); ++i) places_.emplace(arrays.entries()[i].name, i);
  }

  SavedTape run(const JsonNode& root) {
    check_format(root);
    SavedTape saved{read(root.at("tape"), 0), {}, {}, {}};
    for (std::size_t i = 0; i < saved.tape.size(); ++i) {
      const Node& node = saved.tape.node(i);
      const auto var = [&] { return saved.tape.var({static_cast<std::int32_t>(i), 0}); };
      if (node.op == &input_op()) saved.inputs.add(node.name, var());
      if (node.op != &parameter_op()) continue;
      const std::string& name = parameters_.at(i);
      if (!saved.parameters.has(name)) saved.parameters.add(name, var());
    }
    for (const auto& [name, value] : root.at("outputs").entries())
      saved.outputs.add(name, saved.tape.var(id_of(value, saved.tape)));
    check_weights(saved);
    return saved;
  }

 private:
  /// The weights of a model may include weights of other functions, so extra names are no error. But if a parameter of
  /// the tape has no weight, an extra name may be a misspelling of that parameter.
  void check_weights(const SavedTape& saved) const {
    std::vector<std::string> names;  // parameters without a weight
    for (const auto& each : saved.parameters)
      if (!weights_.has(each.name)) names.push_back(each.name);
    if (names.empty()) return;
    for (const Store::Entry& weight : weights_)
      if (!saved.parameters.has(weight.name))
        throw FileError("the tape of '" + arrays_.path() + "' has no parameter '" + weight.name + "'" +
                        did_you_mean(weight.name, names));
  }

  static void check_format(const JsonNode& root) {
    if (!root.has("format") || !root.at("format").is_string() || root.at("format").text() != tape_format)
      root.fail(std::string("this is not a saved tape: its \"format\" must be \"") + tape_format + "\"");
    const std::int64_t version = root.at("version").integer(1, most);
    if (version > tape_version)
      root.at("version").fail("the format has version " + std::to_string(version) +
                              "; this xtape reads versions up to " + std::to_string(tape_version) +
                              ", a newer one reads the file");
    root.only({"format", "version", "tape", "outputs"});
  }

  /// Reads the id of a value. Only nodes that are already on the tape are valid.
  static ValueId id_of(const JsonNode& node, const Tape& tape) {
    const std::vector<JsonNode> parts = node.elements();
    if (parts.size() != 2) node.fail("a value belongs here: the numbers of a node and of its output, such as [3, 0]");
    const ValueId id{small(parts[0]), small(parts[1])};
    if (static_cast<std::size_t>(id.node) >= tape.size())
      node.fail("there is no node " + std::to_string(id.node) + " before this one: a node uses only earlier nodes");
    const std::size_t outputs = tape.node(id.node).outputs.size();
    if (static_cast<std::size_t>(id.output) >= outputs)
      node.fail("node " + std::to_string(id.node) + " has " + std::to_string(outputs) + " outputs, so no output " +
                std::to_string(id.output));
    return id;
  }

  Tape read(const JsonNode& json, int depth) {
    if (depth > deepest_body) json.fail("bodies are nested more than " + std::to_string(deepest_body) + " deep");
    json.only({"mode", "default_dtype", "nodes", "results", "past", "states", "calls"});
    Tape tape(checked(json.at("mode"), [&] { return mode_named(json.at("mode").text()); }));
    checked(json.at("default_dtype"), [&] { tape.set_default_dtype(dtype_of(json.at("default_dtype"))); });
    if (own_ops_ != nullptr) tape.set_ops(*own_ops_);
    for (const JsonNode& node : json.at("nodes").elements()) read_node(node, tape, depth);
    if (const auto results = found(json, "results")) {
      std::vector<ValueId> ids;
      for (const JsonNode& value : results->elements()) ids.push_back(id_of(value, tape));
      tape.set_results(std::move(ids));
    }
    if (const auto past = found(json, "past")) read_past(*past, tape);
    if (const auto states = found(json, "states"))
      for (const JsonNode& state : states->elements()) read_state(state, tape);
    if (const auto calls = found(json, "calls"))
      for (const auto& [place, count] : calls->entries()) {
        const std::optional<std::uint64_t> bits = bits_of(place);
        if (!bits) count.fail_at_key("16 lower-case hexadecimal digits belong here");
        tape.data_->occurrences[*bits] = small(count);
      }
    return tape;
  }

  static void read_past(const JsonNode& json, Tape& tape) {
    json.only({"tokens", "past", "capacity", "caches"});
    const auto first_of = [&](const char* key) {
      const std::int32_t node = small(json.at(key));
      if (static_cast<std::size_t>(node) >= tape.size() || tape.node(node).outputs.empty())
        json.at(key).fail("there is no node " + std::to_string(node));
      return tape.var({node, 0});
    };
    const std::int64_t capacity = json.at("capacity").integer(1, std::numeric_limits<std::int64_t>::max());
    checked(json, [&] {
      const Dtype caches = json.has("caches") ? dtype_named(json.at("caches").text()) : Dtype::float32;
      tape.set_past(first_of("tokens"), first_of("past"), capacity, caches);
    });
  }

  static void read_state(const JsonNode& json, Tape& tape) {
    json.only({"input", "output"});
    const Var input = tape.var(id_of(json.at("input"), tape)), output = tape.var(id_of(json.at("output"), tape));
    if (input.node().op != &input_op()) json.at("input").fail("a state begins at an input");
    if (input.type() != output.type())
      json.fail("the values of a state must have one type, not " + to_string(input.type()) + " and " +
                to_string(output.type()));
    tape.add_state(input, output);
  }

  void read_node(const JsonNode& json, Tape& tape, int depth) {
    const std::size_t index = tape.size();
    const JsonNode op = json.at("op");
    const JsonNode owned = json.owned_by("node " + std::to_string(index) + " (" + op.text() + ")");
    owned.only(
        {"node", "op", "name", "inputs", "attributes", "outputs", "fused", "early", "value", "array", "site", "body"});
    if (owned.at("node").integer(0, most) != static_cast<std::int64_t>(index))
      owned.at("node").fail("this is node " + std::to_string(index) + " of its tape");
    Node node;
    node.op = op_named(owned.at("op"));
    for (const JsonNode& type : owned.at("outputs").elements()) node.outputs.own().push_back(type_of(type));
    if (const auto fused = found(owned, "fused")) node.fused = fused->flag();
    if (const auto early = found(owned, "early")) node.early = early->flag();
    node.site = site_of(owned.at("site"));
    if (node.op->is_source())
      read_source(owned, node, tape, depth);
    else
      read_call(owned, node, tape, depth);
    checked(owned, [&] { tape.append(std::move(node)); });
  }

  const Op* op_named(const JsonNode& json) const {
    if (const Op* op = ops_.find_recorded(json.text())) return op;
    std::vector<std::string> names;
    for (const auto& row : ops_.ops()) names.push_back(row.first);
    json.fail("unknown op '" + json.text() + "'" + did_you_mean(json.text(), names));
  }

  void read_call(const JsonNode& json, Node& node, const Tape& tape, int depth) {
    for (const char* key : {"name", "value", "array"})
      if (json.has(key)) json.at(key).fail_at_key(std::string("only a source has a ") + key);
    OpCall call{{node.attributes}, *node.op};
    for (const JsonNode& input : json.at("inputs").elements()) {
      node.inputs.push_back(id_of(input, tape));
      call.inputs.push_back(tape.type(node.inputs.back()));
    }
    if (const auto attributes = found(json, "attributes"))
      for (const auto& [name, value] : attributes->entries()) node.attributes.set(name, attribute_of(value));
    for (const AttributeSpec& spec : node.op->attributes)  // attributes that an earlier version of the op lacked
      if (spec.initial && node.attributes.find(spec.name) == nullptr) node.attributes.set(spec.name, *spec.initial);
    if (const auto body = found(json, "body")) {
      if (ops_.find(node.op->name) == node.op) body->fail("calls of '" + node.op->name + "' have no body");
      node.body = std::make_shared<const Tape>(read(body->owned_by(""), depth + 1));
      call.body = node.body.get();
    }
    const std::vector<ValueType> types = checked(json, [&] { return checked_types(call); });
    if (node.outputs.get() == types) return;
    const auto list = [](const std::vector<ValueType>& all) {
      std::string text;
      for (const ValueType& type : all) text += (text.empty() ? "" : ", ") + to_string(type);
      return text;
    };
    json.at("outputs").fail("its outputs are " + list(types) + " by the op's shape rule, not " + list(node.outputs));
  }

  void read_source(const JsonNode& json, Node& node, const Tape& tape, int depth) {
    for (const char* key : {"inputs", "attributes", "body"})
      if (json.has(key)) json.at(key).fail_at_key(std::string("a source has no ") + key);
    if (node.outputs.size() != 1) json.at("outputs").fail("a source has one output");
    if (const auto name = found(json, "name")) node.name = name->text();
    checked(json, [&] { checked_bytes(node.outputs[0].dtype, node.outputs[0].shape); });
    if (node.op == &input_op()) {
      if (json.has("value") || json.has("array")) json.fail("an input has no value and no array");
      if (depth == 0 && tape.data_->inputs.count(node.name) > 0)
        json.fail("the tape already has an input named '" + node.name + "'");
    } else if (node.op == &constant_op() && json.has("value")) {
      if (!node.outputs[0].shape.empty() || json.has("array"))
        json.at("value").fail("only a constant of rank 0 has a value");
      node.storage = element_of(json.at("value"), node.outputs[0].dtype);
    } else {
      const JsonNode name = json.at("array");
      node.storage = array_named(name, node);
      if (depth == 0 && node.op == &parameter_op()) parameters_.emplace(tape.size(), name.text());
    }
  }

  /// Returns the array of a parameter or constant: one of the caller's weights, or an array of the file. Reads each
  /// array of the file once.
  Array array_named(const JsonNode& json, const Node& node) {
    const std::string& name = json.text();
    const Array* weight = node.op == &parameter_op() ? weights_.find(name) : nullptr;
    const auto place = places_.find(name);
    if (weight == nullptr && place == places_.end()) json.fail("'" + arrays_.path() + "' has no array '" + name + "'");
    const ValueType given =
        weight != nullptr ? ValueType{weight->dtype(), weight->shape()}
                          : ValueType{arrays_.entries()[place->second].dtype, arrays_.entries()[place->second].shape};
    if (given != node.outputs[0])
      json.fail("the array is " + to_string(given) + ", the node " + to_string(node.outputs[0]));
    if (weight != nullptr) return Array(*weight);
    Array& array = read_[place->second];
    if (!array) array = arrays_.read(place->second);
    return array;
  }

  Site site_of(const JsonNode& json) {
    json.only({"path", "where", "line", "occurrence", "key", "op", "caller"});
    Scope scope;
    if (const auto path = found(json, "path")) scope.path = path->text();
    if (const auto where = found(json, "where")) scope.where = where->text();
    std::shared_ptr<const Scope>& shared = scopes_[{scope.path, scope.where}];
    if (!shared) shared = std::make_shared<const Scope>(scope);
    Site site;
    site.scope = shared;
    if (const auto line = found(json, "line")) site.line = small(*line);
    site.occurrence = small(json.at("occurrence"));
    site.key = bits_of(json.at("key"));
    if (const auto op = found(json, "op")) site.op = op_named(*op);
    if (const auto caller = found(json, "caller")) {
      caller->only({"file", "line"});
      site.caller = {lasting(caller->at("file").text()), small(caller->at("line"))};
    }
    return site;
  }

  const ArrayFile& arrays_;
  const Store& weights_;
  const OpTable* own_ops_;
  const OpTable& ops_;
  std::map<std::string, std::size_t> places_;      // by name: the index of the array in the file
  std::map<std::size_t, Array> read_;              // by index: the arrays that have been read
  std::map<std::size_t, std::string> parameters_;  // by node: the name of its array
  std::map<std::pair<std::string, std::string>, std::shared_ptr<const Scope>> scopes_;
};

SavedTape read_tape(const JsonNode& root, const ArrayFile& arrays, const Store& weights, const OpTable* ops) {
  return TapeReader(arrays, weights, ops).run(root);
}

}  // namespace xtape
