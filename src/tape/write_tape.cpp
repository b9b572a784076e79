// Writes a tape as JSON text, one node per line.
#include <map>
#include <nlohmann/json.hpp>

#include "base/system/durable.hpp"
#include "base/system/files.hpp"
#include "tape/tape_data.hpp"
#include "tape/tape_json.hpp"

namespace xtape {

namespace {
Json json_of_value(ValueId id) {
  return {id.node, id.output};
}

Json json_of_type(const ValueType& type) {
  return {{"dtype", name_of(type.dtype)}, {"shape", std::vector<std::int64_t>(type.shape.begin(), type.shape.end())}};
}

Json json_of_site(const Site& site) {
  Json json = Json::object();
  if (!site.scope->path.empty()) json["path"] = site.scope->path;
  if (!site.scope->where.empty()) json["where"] = site.scope->where;
  if (site.line != 0) json["line"] = site.scope->shown(site.line);
  json["occurrence"] = site.occurrence;
  json["key"] = hexadecimal(site.key);
  if (site.op != nullptr) json["op"] = site.op->name;
  if (site.caller.known()) json["caller"] = {{"file", site.caller.file}, {"line", site.caller.line}};
  return json;
}
}  // namespace

class TapeWriter {
 public:
  explicit TapeWriter(const OpTable& ops) : ops_(ops) {}

  TapeText run(const Tape& tape, const NamedVars& outputs) {
    text_ =
        "{\n\"format\": " + dumped(tape_format) + ",\n\"version\": " + std::to_string(tape_version) + ",\n\"tape\": ";
    find_names(tape);
    write(tape, "", 0);
    Json named = Json::object();
    for (const auto& [name, var] : outputs) {
      if (var.tape() != tape) throw HandleError("cannot save output '" + name + "': its var is of another tape");
      named[name] = json_of_value(var.id());
    }
    text_ += ",\n\"outputs\": " + dumped(named) + "\n}\n";
    return {std::move(text_), std::move(arrays_)};
  }

 private:
  static std::string dumped(const Json& json) {
    try {
      return json.dump();
    } catch (const Json::exception&) {
      throw Error("cannot save the tape: a name or text on it is not UTF-8: " +
                  json.dump(-1, ' ', false, Json::error_handler_t::replace));
    }
  }

  /// Counts the names of parameters, because arrays of one file need different names.
  void find_names(const Tape& tape) {
    for (std::size_t i = 0; i < tape.size(); ++i)
      if (tape.node(i).op == &parameter_op()) ++parameters_[tape.node(i).name];
  }

  /// Writes a tape. Its nodes are named `prefix`#0, `prefix`#1 …
  void write(const Tape& tape, const std::string& prefix, int depth) {
    if (depth > deepest_body)
      throw Error("cannot save the tape: its bodies are nested more than " + std::to_string(deepest_body) + " deep");
    const TapeData& data = *tape.data_;
    const std::string indent(static_cast<std::size_t>(2 * depth), ' ');
    text_ += std::string("{\"mode\": ") + dumped(name_of(data.mode)) +
             ", \"default_dtype\": " + dumped(name_of(data.default_dtype)) + ", \"nodes\": [";
    for (std::size_t i = 0; i < tape.size(); ++i) {
      text_ += (i > 0 ? ",\n" : "\n") + indent;
      write(tape.node(i), prefix + "#" + std::to_string(i), i, depth);
    }
    text_ += "\n" + indent + "]";
    const auto add = [&](const char* key, const Json& value) {
      text_ += ",\n" + indent + "\"" + key + "\": " + dumped(value);
    };
    if (!data.results.empty()) {
      Json results = Json::array();
      for (const ValueId id : data.results) results.push_back(json_of_value(id));
      add("results", results);
    }
    if (data.past >= 0) {
      Json past = {{"tokens", data.tokens}, {"past", data.past}, {"capacity", data.capacity}};
      if (data.caches != Dtype::float32) past["caches"] = name_of(data.caches);
      add("past", past);
    }
    if (!data.states.empty()) {
      Json states = Json::array();
      for (const auto& [input, output] : data.states)
        states.push_back({{"input", json_of_value(input)}, {"output", json_of_value(output)}});
      add("states", states);
    }
    const std::map<std::uint64_t, std::int32_t> counts(data.occurrences.begin(), data.occurrences.end());
    Json calls = Json::object();
    for (const auto& [place, count] : counts)
      if (count > 0) calls[hexadecimal(place)] = count;
    if (!calls.empty()) add("calls", calls);
    text_ += "}";
  }

  void write(const Node& node, const std::string& label, std::size_t index, int depth) {
    if (ops_.find_recorded(node.op->name) != node.op)
      throw Error("cannot save the tape: op '" + node.op->name + "' of node " + label +
                  " is not in the tape's op table: set one that has the op (Tape::set_ops)");
    Json json = {{"node", index}, {"op", node.op->name}};
    if (!node.name.empty()) json["name"] = node.name;
    if (!node.op->is_source()) json["inputs"] = Json::array();
    for (const ValueId id : node.inputs) json["inputs"].push_back(json_of_value(id));
    for (const auto& [name, value] : node.attributes.items()) json["attributes"][name] = json_of(value);
    json["outputs"] = Json::array();
    for (const ValueType& type : node.outputs) json["outputs"].push_back(json_of_type(type));
    if (node.fused) json["fused"] = true;
    if (node.early) json["early"] = true;
    if (node.op == &constant_op() && node.storage.shape().empty())
      json["value"] = json_of_element(node.storage);
    else if (node.storage)
      json["array"] = array_name(node, label);
    json["site"] = json_of_site(node.site);
    std::string line = dumped(json);
    if (node.body == nullptr) {
      text_ += line;
      return;
    }
    line.pop_back();
    text_ += line + ", \"body\": ";
    write(*node.body, label, depth + 1);
    text_ += "}";
  }

  /// Returns the name of the node's array in the file. Nodes with the same memory and type share one array.
  std::string array_name(const Node& node, const std::string& label) {
    std::string& name = names_[{node.storage.data(), to_string(node.outputs[0])}];
    if (!name.empty()) return name;
    const auto same = parameters_.find(node.name);
    if (node.op == &parameter_op() && !node.name.empty() && same != parameters_.end() && same->second == 1) {
      name = node.name;
    } else {
      name = (node.name.empty() ? node.op->name : node.name) + label;
      while (parameters_.count(name) > 0) name += "'";
      parameters_.emplace(name, 1);
    }
    arrays_.emplace_back(name, node.storage);
    return name;
  }

  const OpTable& ops_;
  std::string text_;
  std::vector<std::pair<std::string, Array>> arrays_;
  std::map<std::string, int> parameters_;  // by name: the number of parameters or arrays with this name
  std::map<std::pair<const void*, std::string>, std::string> names_;  // by memory and type: the name of the array
};

TapeText text_of(const Tape& tape, const NamedVars& outputs) {
  return TapeWriter(ops_of(tape)).run(tape, outputs);
}

// The folder of a saved tape.

bool is_saved_tape(const std::string& path) {
  return is_plain_file(path_in(path, tape_file));
}

void write_saved_tape(const std::string& folder, const TapeText& written) {
  std::vector<ArrayFile::Entry> entries;
  for (const auto& [name, array] : written.arrays) entries.push_back({name, array.dtype(), array.shape()});
  ArrayWriter arrays(path_in(folder, arrays_file), entries);
  for (const auto& each : written.arrays) arrays.write(each.second);
  arrays.commit();
  write_file(path_in(folder, tape_file), written.text);
}

void Tape::save(const std::string& path, const NamedVars& outputs) const {
  if (path_exists(path)) {
    const std::string what = "cannot save the tape: '" + path + "' exists and ";
    if (!is_saved_tape(path)) throw FileError(what + "is not a saved tape");
    if (const std::string other = other_name_in(path, {tape_file, arrays_file}); !other.empty())
      throw FileError(what + "also has '" + other + "'");
  }
  const TapeText written = text_of(*this, outputs);
  write_folder(path, [&](const std::string& beside) { write_saved_tape(beside, written); });
}

SavedTape Tape::load(const std::string& path, const Store& weights, const OpTable* ops) {
  if (!is_saved_tape(path)) throw FileError("'" + path + "' is not a saved tape: a folder with " + tape_file);
  const std::string file = path_in(path, tape_file);
  const ArrayFile arrays(path_in(path, arrays_file));
  return read_tape(JsonNode(read_file(file), file, JsonErrors::file), arrays, weights, ops);
}

}  // namespace xtape
