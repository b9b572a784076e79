// Compares a play with reference arrays from another program.
#include <algorithm>
#include <cmath>

#include "base/arrays/elements.hpp"
#include "base/arrays/visit.hpp"
#include "base/messages/wording.hpp"
#include "inspect/node_by_node.hpp"
#include "xtape/inspect.hpp"
#include "xtape/op/op.hpp"

namespace xtape {

namespace {
/// A value to compare, in the order of playing.
struct Compared {
  std::string name;
  ValueId value;       // the value on the caller's tape
  std::size_t output;  // the index of the output of the play
};

bool is_in(const std::string& path, const std::string& module) {
  return path == module ||
         (path.size() > module.size() && path.compare(0, module.size(), module) == 0 && path[module.size()] == '.');
}

bool is_reversed(const Shape& a, const Shape& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), std::make_reverse_iterator(b.end()));
}

/// Returns whether the module recorded the node, or a node of its body. For example, a scan over a cell belongs to the
/// cell.
bool belongs_to(const Node& node, const std::string& module) {
  if (is_in(node.site.scope->path, module)) return true;
  for (std::size_t i = 0; node.body && i < node.body->size(); ++i)
    if (belongs_to(node.body->node(i), module)) return true;
  return false;
}

/// Returns the last value with this shape that the module computed, among the nodes before `end`. If no value has the
/// shape, returns the module's last value.
std::optional<ValueId> value_of_module(const Tape& tape, std::size_t end, const std::string& module,
                                       const Shape& shape) {
  std::optional<ValueId> any;
  for (std::size_t i = std::min(end, tape.size()); i-- > 0;) {
    const Node& node = tape.node(i);
    if (node.op->is_source() || !belongs_to(node, module)) continue;
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      const ValueId id{static_cast<std::int32_t>(i), static_cast<std::int32_t>(k)};
      if (node.outputs[k].shape == shape) return id;
      if (!any) any = id;
    }
  }
  return any;
}

std::optional<ValueId> value_named(const RecordedPlay& play, const NamedVars& outputs, const std::string& name,
                                   const Shape& shape) {
  if (const Var* output = outputs.find(name)) return output->id();
  for (std::size_t i = 0; i < play.tape.size(); ++i)
    if (play.tape.node(i).op == &parameter_op() && play.tape.node(i).name == name)
      return ValueId{static_cast<std::int32_t>(i), 0};
  const std::size_t forward =
      play.outputs.empty() ? play.tape.size() : static_cast<std::size_t>(play.outputs[0].id().node) + 1;
  return value_of_module(play.tape, forward, name, shape);
}

Array transposed(const Array& array) {
  Layout layout = Layout::dense(array.shape());
  std::ranges::reverse(layout.shape);
  std::ranges::reverse(layout.strides);
  return Array(ArrayView(array.data(), array.dtype(), layout));
}

/// Converts an array of any dtype to float64.
Array numbers(const Array& array) {
  Array wide(Dtype::float64, array.shape());
  visit_elements(array, [&](const auto* elements) {
    std::transform(elements, elements + array.count(), wide.as<double>(),
                   [](auto element) { return static_cast<double>(element); });
  });
  return wide;
}

/// Stores in `found` how much two arrays of the same shape differ, and where they differ most.
void measure(const Array& ours, const Array& theirs, Mismatch& found) {
  if (ours.count() == 0) return;
  double difference = 0, size = 0;
  std::int64_t at = 0;
  found.largest = 0;
  for (std::int64_t i = 0; i < ours.count(); ++i) {
    const double a = ours.as<double>()[i], b = theirs.as<double>()[i];
    const bool same = a == b || (std::isnan(a) && std::isnan(b));
    const double d = same ? 0 : std::isfinite(a) && std::isfinite(b) ? std::abs(a - b) : HUGE_VAL;
    difference += d * d;
    if (std::isfinite(b)) size += b * b;
    if (d <= found.largest) continue;
    found.largest = d;
    at = i;
  }
  found.relative = difference == 0 ? 0 : size == 0 ? HUGE_VAL : std::sqrt(difference / size);
  found.ours = ours.as<double>()[at];
  found.theirs = theirs.as<double>()[at];
  found.element = index_of(at, ours.shape());
}

/// The calls that compute a value from values that match the reference.
struct Route {
  std::vector<std::string> calls;  ///< One text per source line.
  std::set<std::string> modules;   ///< The modules of the calls, and of the matching values at which the route begins.
};

/// Adds a node to the calls. If the node was recorded on the same source line as the last node, extends the last text.
void add_call(const Tape& tape, std::int32_t index, const std::string& before, Route& route, std::string& last) {
  const Node& node = tape.node(index);
  const std::string site = to_string(node.site), name = to_string(Origin{index, node.op});
  if (!site.empty() && site == last) {
    std::string& call = route.calls.back();
    call.insert(call.size() - site.size() - 2, ", " + name);
  } else {
    route.calls.push_back(before + name + (site.empty() ? "" : ", " + site));
  }
  last = site;
}

Route route_between(const Tape& tape, const std::set<std::int32_t>& known, std::int32_t index) {
  Route route;
  std::set<std::int32_t> found;
  std::vector<std::int32_t> queue{index};
  while (!queue.empty()) {
    const std::int32_t next = queue.back();
    queue.pop_back();
    const Node& node = tape.node(next);
    if (node.op->is_source()) continue;
    route.modules.insert(node.site.scope->path);
    if ((next != index && known.count(next) > 0) || !found.insert(next).second) continue;
    for (const ValueId id : node.inputs) queue.push_back(id.node);
  }
  std::string last;
  for (const std::int32_t each : found) {
    add_call(tape, each, "", route, last);
    const Tape* body = tape.node(each).body.get();
    std::string last_inside;
    for (std::size_t i = 0; body != nullptr && i < body->size(); ++i)
      if (!body->node(i).op->is_source())
        add_call(*body, static_cast<std::int32_t>(i), "  in its body ", route, last_inside);
    if (body != nullptr) last.clear();
  }
  return route;
}

/// Returns the lines that apply the modules and the modules around them, without repetition.
std::vector<std::string> lines_applying(const std::set<std::string>& modules,
                                        const std::map<std::string, std::vector<std::string>>& applied) {
  std::set<std::string> paths;
  for (std::string path : modules)
    for (;;) {
      paths.insert(path);
      const std::size_t dot = path.rfind('.');
      if (dot == std::string::npos) break;
      path.resize(dot);
    }
  std::vector<std::string> lines;
  for (const std::string& path : paths)
    if (const auto found = applied.find(path); found != applied.end())
      for (const std::string& line : found->second)
        if (!contains(lines, line)) lines.push_back(line);
  return lines;
}
}  // namespace

ReferenceComparison compare(const RecordedPlay& play, const NamedVars& outputs, const Store& reference,
                            double tolerance, const std::map<std::string, std::vector<std::string>>& applied) {
  ReferenceComparison result;
  std::vector<Compared> list;
  RecordedPlay all = play;
  all.outputs.clear();
  all.options.passes = Passes::unfused();
  for (const auto& each : outputs)
    if (each.value.tape() != play.tape)
      throw HandleError("compare: output '" + each.name + "' belongs to another tape than the play");
  for (const auto& [name, array] : reference) {
    if (!array) throw Error("compare: the array is empty: '" + name + "'");
    const auto value = value_named(play, outputs, name, array.shape());
    if (!value) {
      result.unknown.push_back(name);
      continue;
    }
    list.push_back({name, *value, all.outputs.size()});
    all.outputs.push_back(play.tape.var(*value));
  }
  const auto earlier = [](const Compared& a, const Compared& b) { return a.value.node < b.value.node; };
  std::ranges::stable_sort(list, earlier);
  if (list.empty()) return result;
  const NodeByNode plays(all);
  const NodeByNode::Values values =
      plays.play([](std::int32_t, const std::vector<Array>&, std::vector<Array>&) { return true; });
  std::set<std::int32_t> known;
  for (const Compared& each : list) {
    const Array& own = values.at(plays.program().outputs[each.output]);
    const Array& theirs = *reference.find(each.name);
    Mismatch found;
    found.name = each.name;
    found.relative = own.count() == 0 && own.shape() == theirs.shape() ? 0 : HUGE_VAL;
    const bool turned = own.shape() != theirs.shape() && is_reversed(own.shape(), theirs.shape());
    if (own.shape() == theirs.shape() || turned)
      measure(numbers(own), numbers(turned ? transposed(theirs) : Array(theirs)), found);
    if (own.shape() == theirs.shape() && found.relative <= tolerance) {
      result.matched.push_back(each.name);
      known.insert(each.value.node);
      continue;
    }
    if (own.shape() == theirs.shape() && own.shape().size() == 2 && own.shape()[0] == own.shape()[1]) {
      Mismatch other = found;
      measure(numbers(own), numbers(transposed(theirs)), other);
      found.transposed = other.relative <= tolerance;
    } else if (turned) {
      found.transposed = found.relative <= tolerance;
      found.relative = HUGE_VAL;
      found.element.clear();
    }
    const Node& node = play.tape.node(each.value.node);
    found.node = to_string(Origin{each.value.node, node.op});
    found.site = to_string(node.site);
    found.type = to_string(play.tape.type(each.value));
    found.reference_type = to_string(ValueType{theirs.dtype(), theirs.shape()});
    Route route = route_between(play.tape, known, each.value.node);
    found.calls = std::move(route.calls);
    std::string module = each.name.starts_with("grad.") ? each.name.substr(5) : each.name;
    if (module != each.name) module.resize(std::min(module.size(), module.rfind('.')));  // the module of the weight
    route.modules.insert(module);
    found.applied = lines_applying(route.modules, applied);
    result.mismatched.push_back(std::move(found));
  }
  return result;
}

}  // namespace xtape
