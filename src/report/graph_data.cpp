// The graph of a tape: nodes, sites, and the texts of definitions.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <type_traits>

#include "base/arrays/order.hpp"
#include "base/arrays/visit.hpp"
#include "base/system/durable.hpp"
#include "base/system/files.hpp"
#include "inspect/node_by_node.hpp"
#include "report/gathered.hpp"
#include "tape/node_text.hpp"
#include "xtape/op/op.hpp"

namespace xtape::report_data {

std::int64_t Strings::of(const std::string& text) {
  const auto [place, fresh] = index_.emplace(text, static_cast<std::int64_t>(list_.size()));
  if (fresh) list_.push_back(text);
  return place->second;
}

namespace {
std::string with_7_digits(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.7g", number);
  return text;
}
}  // namespace

Json short_number(double number) {
  if (!std::isfinite(number)) return nullptr;
  return std::strtod(with_7_digits(number).c_str(), nullptr);
}

std::int64_t Sites::add(const std::string& text, const Place& place) {
  const auto [found, fresh] = index_.emplace(text, static_cast<std::int64_t>(rows_.size()));
  if (!fresh) return found->second;
  rows_.push_back(Json::array(
      {strings_.of(text), strings_.of(place.path), strings_.of(place.file), strings_.of(place.owner), place.line}));
  if (place.file.empty()) return found->second;
  const auto known = files_.emplace(place.file, place.of_program).first;
  known->second = known->second && place.of_program;
  return found->second;
}

std::int64_t Sites::of(const Site& site) {
  Place place;
  if (site.scope) place.path = site.scope->path;
  if (site.scope && !site.scope->where.empty()) {  // "gpt2.json, block 'attention'"
    const std::string& where = site.scope->where;
    const std::size_t owner = std::max(where.rfind(", block '") + 1, where.rfind(", function '") + 1);
    place.file = owner == 0 ? "" : where.substr(0, owner - 1);
    place.owner = owner == 0 ? where : where.substr(owner + 1);
    place.line = site.line > 0 ? site.scope->shown(site.line) : 0;
  } else if (site.caller.known()) {
    place = {place.path, site.caller.file, "", site.caller.line, true};
  }
  return add(to_string(site), place);
}

std::int64_t Sites::of(const std::string& text) {
  return add(text, {});
}

namespace {
/// Returns whether a text is a definition, which is what a tape from elsewhere may name.
bool is_definition(const std::string& text, const std::string& path) {
  const JsonText json(text, path, JsonErrors::file);
  const Json& root = json.root();
  const auto has = [&](const char* key) { return root.contains(key); };
  return root.is_object() && has("xtape") &&
         std::ranges::any_of(std::array{"blocks", "functions", "model", "extends"}, has);
}

/// Returns the text of a file to show, of at most `most` bytes, or nothing. A tape may come from elsewhere and name any
/// file. So the size is checked before anything is read, and a file is only shown if it is a definition, or a source of
/// a program that has asked for its sources.
std::optional<std::string> text_to_show(const std::string& path, bool of_program, std::uint64_t most) {
  try {
    if (!is_plain_file(path)) return std::nullopt;  // a device may not even be opened
    const OpenFile file(path);
    if (file.size() > most) return std::nullopt;
    std::string text(file.size(), '\0');
    file.read(0, text.data(), text.size());
    if (!of_program && !is_definition(text, path)) return std::nullopt;
    return text;
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// The value of a constant with one element.
std::string number_of(const Array& array) {
  return visit_elements(array, [](const auto* element) {
    if constexpr (std::is_integral_v<std::remove_cvref_t<decltype(*element)>>)
      return std::to_string(*element);
    else
      return with_7_digits(static_cast<double>(*element));
  });
}

std::string note_of(const Node& node) {
  std::string text;
  for (const auto& item : node.attributes.items())
    text += (text.empty() ? "" : ", ") + item.first + "=" + to_string(item.second);
  if (node.name.empty() && node.op->is_source() && node.storage && node.storage.count() == 1)
    text = number_of(node.storage);
  return text;
}

/// "source", "view", "elementwise", "random" or "other".
const char* kind_of(const Op& op) {
  if (op.is_source()) return "source";
  if (op.is_view()) return "view";
  if (op.random) return "random";
  return op.lowering.tile ? "elementwise" : "other";
}

void add_body(const Tape& body, const std::string& indent, std::string& text) {
  for (std::size_t i = 0; i < body.size() && text.size() < 20'000; ++i) {
    text += indent + line_of(body, i) + "\n";
    if (body.node(i).body) add_body(*body.node(i).body, indent + "    ", text);
  }
}
}  // namespace

Json Sites::files() const {
  constexpr std::uint64_t most = 1 << 20, most_together = 16 << 20;  // bytes
  Json files = Json::array();
  std::uint64_t left = most_together;
  for (const auto& [path, of_program] : files_) {
    if (of_program && !shows_program_) continue;
    const std::optional<std::string> text = text_to_show(path, of_program, std::min(most, left));
    if (!text) continue;
    left -= text->size();
    files.push_back({{"name", strings_.of(path)}, {"text", *text}});
  }
  return files;
}

Json graph_of(const RecordedPlay& play, const NamedVars& named, Strings& strings, Sites& sites) {
  const Tape& tape = play.tape;
  Json op = Json::array(), name = op, site = op, types = op, inputs = op, note = op, kinds = Json::object();
  Json bodies = Json::object();
  for (std::size_t i = 0; i < tape.size(); ++i) {
    const Node& node = tape.node(i);
    op.push_back(strings.of(node.op->name));
    kinds[node.op->name] = kind_of(*node.op);
    name.push_back(strings.of(node.name));
    site.push_back(sites.of(node.site));
    note.push_back(strings.of(note_of(node)));
    Json of_node = Json::array(), from = Json::array();
    for (const ValueType& type : node.outputs) of_node.push_back(strings.of(to_string(type)));
    for (const ValueId& input : node.inputs) from.insert(from.end(), {input.node, input.output});
    types.push_back(of_node);
    inputs.push_back(from);
    std::string body;
    if (node.body) add_body(*node.body, "", body);
    if (node.body) bodies[std::to_string(i)] = body;
  }
  Json outputs = Json::array();
  for (const Var& output : play.outputs) {
    const auto known =
        std::find_if(named.begin(), named.end(), [&](const auto& each) { return each.value.id() == output.id(); });
    outputs.push_back(Json::array({output.id().node, output.id().output, known == named.end() ? "" : known->name}));
  }
  return {{"mode", name_of(tape.mode())},
          {"op", op},
          {"name", name},
          {"site", site},
          {"types", types},
          {"inputs", inputs},
          {"note", note},
          {"kinds", kinds},
          {"bodies", bodies},
          {"outputs", outputs},
          {"loss", loss_node_of(play)}};
}

}  // namespace xtape::report_data
