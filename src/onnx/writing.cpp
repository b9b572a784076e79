#include "onnx/writing.hpp"

#include <algorithm>
#include <protozero/pbf_writer.hpp>

#include "base/messages/wording.hpp"
#include "ops/recording/op_helpers.hpp"
#include "tape/graph.hpp"
#include "xtape/ops.hpp"

namespace xtape::onnx {

using protozero::pbf_writer;

namespace {
template <class Write>
std::string message(const Write& write) {
  std::string bytes;
  pbf_writer to(bytes);
  write(to);
  return bytes;
}

std::string attribute_bytes(const WrittenAttributes::value_type& attribute) {
  return message([&](pbf_writer& to) {
    to.add_string(1, attribute.first);
    if (const auto* number = std::get_if<double>(&attribute.second)) {
      to.add_float(2, static_cast<float>(*number));
      to.add_int32(20, Attribute::real);
    } else if (const auto* integer = std::get_if<std::int64_t>(&attribute.second)) {
      to.add_int64(3, *integer);
      to.add_int32(20, Attribute::integer);
    } else if (const auto* text = std::get_if<std::string>(&attribute.second)) {
      to.add_bytes(4, *text);
      to.add_int32(20, Attribute::text);
    } else if (const auto* graph = std::get_if<GraphBytes>(&attribute.second)) {
      to.add_message(6, graph->bytes);
      to.add_int32(20, Attribute::graph);
    } else {
      for (const std::int64_t each : std::get<Integers>(attribute.second)) to.add_int64(8, each);
      to.add_int32(20, Attribute::integers);
    }
  });
}

/// Returns the nodes that the results need. Stops at values that already have names.
std::vector<bool> needed_nodes(const Tape& tape, const std::vector<ValueId>& results, const ValueNames& names) {
  std::vector<bool> needed(tape.size());
  std::vector<ValueId> open = results;
  while (!open.empty()) {
    const ValueId id = open.back();
    open.pop_back();
    if (names.count(id) != 0 || needed[static_cast<std::size_t>(id.node)]) continue;
    needed[static_cast<std::size_t>(id.node)] = true;
    const xtape::Node& node = tape.node(static_cast<std::size_t>(id.node));
    open.insert(open.end(), node.inputs.begin(), node.inputs.end());
  }
  return needed;
}
}  // namespace

Element element_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::float32:
      return Element::float32;
    case Dtype::float64:
      return Element::float64;
    case Dtype::bfloat16:
      return Element::bfloat16;
    case Dtype::float16:
      return Element::float16;
    case Dtype::int32:
      return Element::int32;
    case Dtype::int64:
      return Element::int64;
    case Dtype::int8:
      return Element::int8;
    case Dtype::boolean:
      return Element::boolean;
    default:
      throw DtypeError(std::string("ONNX has no element type for ") + name_of(dtype) + ": dequantize it");
  }
}

std::string value_bytes(const std::string& name, Dtype dtype, const std::optional<std::vector<Dimension>>& sizes) {
  const std::string array = message([&](pbf_writer& to) {
    to.add_int32(1, static_cast<std::int32_t>(element_of(dtype)));
    if (!sizes) return;
    to.add_message(2, message([&](pbf_writer& shape) {
                     for (const Dimension& each : *sizes)
                       shape.add_message(1, message([&](pbf_writer& dim) {
                                           if (each.size) dim.add_int64(1, *each.size);
                                           if (!each.name.empty()) dim.add_string(2, each.name);
                                         }));
                   }));
  });
  return message([&](pbf_writer& to) {
    to.add_string(1, name);
    to.add_message(2, message([&](pbf_writer& kind) { kind.add_message(1, array); }));
  });
}

std::string value_bytes(const std::string& name, const ValueType& type) {
  std::vector<Dimension> sizes;
  for (const std::int64_t size : type.shape) sizes.push_back({size, {}});
  return value_bytes(name, type.dtype, sizes);
}

std::string Shared::inside_bytes(const std::string& name, const ValueType& type) const {
  return open ? value_bytes(name, type.dtype, std::nullopt) : value_bytes(name, type);
}

std::string Shared::fresh(const std::string& hint) {
  std::string name = hint;
  while (!taken_.insert(name).second) name = hint + "_" + std::to_string(++counts_[hint]);
  return name;
}

std::string Shared::add(const std::string& hint, const Array& array) {
  initialisers.push_back({fresh(hint), Array(array)});
  return initialisers.back().name;
}

std::string Shared::added_constant(const Array& array) {
  constexpr std::size_t largest = 1 << 20;  // larger arrays may have to be outside the file
  if (!is_floating(array.dtype()) || array.bytes() > largest) return add("constant", array);
  const std::string name = fresh("constant");
  const std::string tensor = message([&](pbf_writer& to) {
    for (const std::int64_t size : array.shape()) to.add_int64(1, size);
    to.add_int32(2, static_cast<std::int32_t>(element_of(array.dtype())));
    to.add_bytes(9, static_cast<const char*>(array.data()), array.bytes());
  });
  const std::string value = message([&](pbf_writer& to) {
    to.add_string(1, "value");
    to.add_message(5, tensor);
    to.add_int32(20, Attribute::tensor);
  });
  pbf_writer(constants).add_message(1, message([&](pbf_writer& to) {
                                      to.add_string(2, name);
                                      to.add_string(3, name);
                                      to.add_string(4, "Constant");
                                      to.add_message(5, value);
                                    }));
  return name;
}

std::string Shared::constant(const Array& array) {
  constexpr std::size_t small = 256;
  // with dynamic dimensions, small and large arrays must be treated alike for all sizes
  if (array.bytes() > small && !open) return added_constant(array);
  const std::string key = to_string(ValueType{array.dtype(), array.shape()}) + ":" +
                          std::string(static_cast<const char*>(array.data()), array.bytes());
  const auto found = known_.find(key);
  if (found != known_.end()) return found->second;
  return known_[key] = added_constant(array);
}

namespace {
const std::map<std::string, const WriterRow*>& writer_table() {
  static const std::map<std::string, const WriterRow*> table = [] {
    std::map<std::string, const WriterRow*> made;
    for (const WriterRows* family : {&elementwise_writers(), &reduction_writers(), &shape_writers(),
                                     &indexing_writers(), &product_writers(), &control_writers()})
      for (const WriterRow& row : *family) made.emplace(row.op, &row);
    return made;
  }();
  return table;
}
}  // namespace

const WriterRow* find_writer(const std::string& op) {
  const auto found = writer_table().find(op);
  return found == writer_table().end() ? nullptr : found->second;
}

Names written_ops() {
  Names names;
  for (const auto& [name, row] : writer_table()) names.push_back(name);
  return names;
}

void GraphWriter::append(const std::string& op, const Names& inputs, const Names& outputs,
                         const WrittenAttributes& attributes, const std::string& name) {
  pbf_writer(nodes_).add_message(1, message([&](pbf_writer& to) {
                                   for (const std::string& each : inputs) to.add_string(1, each);
                                   for (const std::string& each : outputs) to.add_string(2, each);
                                   to.add_string(3, name);
                                   to.add_string(4, op);
                                   for (const auto& each : attributes) to.add_message(5, attribute_bytes(each));
                                 }));
}

Names GraphWriter::add(const std::string& op, const Names& inputs, std::size_t outputs,
                       const WrittenAttributes& attributes) {
  const std::string name = shared_.fresh(scope_.empty() ? op : scope_ + "/" + op);
  Names names = {name};
  while (names.size() < outputs) names.push_back(shared_.fresh(name + "." + std::to_string(names.size())));
  append(op, inputs, names, attributes, name);
  made_.insert(made_.end(), names.begin(), names.end());
  return names;
}

Types GraphWriter::types() const {
  Types types;
  for (const std::string& name : made_)
    if (const auto found = types_.find(name); found != types_.end()) types.add(name, found->second);
  return types;
}

std::string GraphWriter::bytes(const std::string& name, const Names& inputs, const Names& outputs) const {
  Names values;
  for (const auto& [value, type] : types()) values.push_back(shared_.inside_bytes(value, type));
  return graph_bytes(nodes_, name, inputs, outputs, values);
}

void GraphWriter::rename(const std::string& value, const std::string& name) {
  append("Identity", {value}, {name}, {}, name);
}

std::string graph_bytes(const std::string& nodes, const std::string& name, const Names& inputs, const Names& outputs,
                        const Names& values) {
  std::string bytes = nodes;
  pbf_writer to(bytes);
  to.add_string(2, name);
  for (const std::string& each : inputs) to.add_message(11, each);
  for (const std::string& each : outputs) to.add_message(12, each);
  for (const std::string& each : values) to.add_message(13, each);
  return bytes;
}

/// Records the expansion on a separate tape and writes it from there. Numbers stay numbers, because ops inspect them.
Names GraphWriter::expanded(const xtape::Node& node, const WriteCall& call, const Tape& tape, int depth) {
  if (depth > 100) throw Error("the expansion of " + node.op->name + " does not end");
  Tape apart = tape.blank();
  const auto in_site = apart.in_site(node.site);
  ValueNames names;
  Vars inputs;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const xtape::Node& given = tape.node(static_cast<std::size_t>(node.inputs[i].node));
    inputs.push_back(is_number(given)
                         ? apart.constant(given.storage)
                         : apart.input("in" + std::to_string(i), call.types[i].shape, call.types[i].dtype));
    names[inputs.back().id()] = call.inputs[i];
  }
  const Vars outputs = expansion(node, apart, inputs);
  std::vector<ValueId> results;
  for (std::size_t k = 0; k < outputs.size(); ++k)
    if (call.wanted[k]) results.push_back(outputs[k].id());
  write(apart, results, names, depth + 1);
  Names found;
  for (std::size_t k = 0; k < outputs.size(); ++k) found.push_back(call.wanted[k] ? names.at(outputs[k].id()) : "");
  return found;
}

Names GraphWriter::written(const xtape::Node& node, WriteCall& call, const Tape& tape, int depth) {
  if (const WriterRow* row = find_writer(node.op->name)) {
    call.row = row;
    const Names found = row->writer(call);
    bool complete = !found.empty();
    for (std::size_t k = 0; k < call.wanted.size(); ++k)
      complete = complete && (!call.wanted[k] || (k < found.size() && !found[k].empty()));
    if (complete) return found;
  }
  if (node.op->expand) return expanded(node, call, tape, depth);
  const std::string site = to_string(node.site), missing = node.op->name + (site.empty() ? "" : " at " + site);
  if (!contains(shared_.missing, missing)) shared_.missing.push_back(missing);
  return Names(node.outputs.size(), "?");  // the walk continues, to find all calls that cannot be written
}

void GraphWriter::write(const Tape& tape, const std::vector<ValueId>& results, ValueNames& names, int depth) {
  const std::vector<bool> needed = needed_nodes(tape, results, names);
  std::vector<std::vector<bool>> wanted(tape.size());
  const auto want = [&](ValueId id) {
    auto& of_node = wanted[static_cast<std::size_t>(id.node)];
    of_node.resize(tape.node(static_cast<std::size_t>(id.node)).outputs.size());
    of_node[static_cast<std::size_t>(id.output)] = true;
  };
  for (const ValueId id : results) want(id);
  for (std::size_t i = 0; i < tape.size(); ++i)
    if (needed[i])
      for (const ValueId id : tape.node(i).inputs) want(id);
  for (std::size_t i = 0; i < tape.size(); ++i) {
    if (!needed[i]) continue;
    const xtape::Node& node = tape.node(i);
    const auto index = static_cast<std::int32_t>(i);
    if (node.op->is_source() && is_block(node.outputs[0].dtype) && node.storage) {
      names[{index, 0}] = add_blocks(*this, node.name, node.storage);
    } else if (node.op == &constant_op()) {
      names[{index, 0}] = shared_.constant(node.storage);
    } else if (node.op == &parameter_op()) {
      names[{index, 0}] = shared_.add(node.name, node.storage);
    } else if (node.op == &input_op()) {
      throw Error("input '" + node.name + "' of the tape is not among the inputs of the file");
    } else {
      scope_ = node.site.scope->path;
      WriteCall call{{node.attributes}, *this, node, {}, {}, wanted[i], nullptr};
      for (const ValueId id : node.inputs) {
        call.inputs.push_back(names.at(id));
        call.types.push_back(tape.type(id));
      }
      const Names found = written(node, call, tape, depth);
      for (std::size_t k = 0; k < found.size(); ++k) {
        if (found[k].empty()) continue;
        names.emplace(ValueId{index, static_cast<std::int32_t>(k)}, found[k]);
        if (!is_block(node.outputs[k].dtype)) types_.emplace(found[k], node.outputs[k]);
      }
    }
  }
}

std::int64_t WriteCall::axis(const char* name) const {
  return static_cast<std::int64_t>(normal_axis(integer(name), shape().size()));
}

bool WriteCall::more_wanted() const {
  return std::find(wanted.begin() + 1, wanted.end(), true) != wanted.end();
}

std::string WriteCall::add(const std::string& op, const Names& operands, const WrittenAttributes& attributes) const {
  return graph.add(op, operands, 1, attributes)[0];
}

Names WriteCall::add(const std::string& op, const Names& operands, std::size_t outputs,
                     const WrittenAttributes& attributes) const {
  return graph.add(op, operands, outputs, attributes);
}

std::string WriteCall::cast(const std::string& value, Dtype dtype) const {
  return add("Cast", {value}, {{"to", static_cast<std::int64_t>(element_of(dtype))}});
}

std::string WriteCall::where(const std::string& condition, const std::string& a, const std::string& b,
                             Dtype dtype) const {
  const Dtype wide = number_dtype(dtype);
  return cast(add("Where", {condition, cast(a, dtype, wide), cast(b, dtype, wide)}), wide, dtype);
}

std::string WriteCall::list(const Integers& numbers) const {
  Array array(Dtype::int64, {std::ssize(numbers)});
  std::copy(numbers.begin(), numbers.end(), array.as<std::int64_t>());
  return graph.shared().constant(array);
}

std::string WriteCall::scalar(const Literal& number, Dtype dtype) const {
  Tape tape;
  return graph.shared().constant(tape.constant(number, dtype).node().storage);
}

std::string WriteCall::reshaped(const std::string& value, const Shape& shape) const {
  const bool has_zero = contains(shape, 0);
  return add("Reshape", {value, list(Integers(shape.begin(), shape.end()))},
             has_zero ? WrittenAttributes{{"allowzero", 1}} : WrittenAttributes{});
}

std::string WriteCall::transposed(const std::string& value, const Integers& axes) const {
  if (std::is_sorted(axes.begin(), axes.end())) return value;
  return add("Transpose", {value}, {{"perm", axes}});
}

}  // namespace xtape::onnx
