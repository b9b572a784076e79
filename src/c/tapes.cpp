// Tapes, and ops by name.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "c/values.hpp"
#include "tape/tape_json.hpp"
#include "xtape/op/op.hpp"

namespace xtape::c {

namespace {
NamedSizes sizes_of(const JsonNode& node) {
  NamedSizes sizes;
  for (const auto& [name, size] : node.entries()) sizes.add(name, size.integer(INT64_MIN, INT64_MAX));
  return sizes;
}

/// The attributes of a call. Values have the form that saved tapes have, and sizes also {"h": 2}.
Attributes attributes_of(const Op& op, const char* text) {
  Attributes attributes;
  if (text == nullptr) return attributes;
  for (const auto& [name, value] : json_object(text, "attributes").entries()) {
    const bool sizes = std::ranges::any_of(op.attributes, [&, &key = name](const AttributeSpec& spec) {
      return spec.name == key && spec.type == AttributeType::named_sizes;
    });
    attributes.set(name, sizes && !value.has("sizes") ? Attribute(sizes_of(value)) : attribute_of(value));
  }
  return attributes;
}

/// A text without the line breaks and indentations of its source.
std::string in_one_line(const std::string& text) {
  std::string line;
  for (std::istringstream words(text); words >> std::ws;) {
    std::string word;
    words >> word;
    line += (line.empty() ? "" : " ") + word;
  }
  return line;
}

/// The op table as JSON.
Json table_json() {
  static const char* const arities[] = {"one", "optional", "many"};
  static const char* const accepts[] = {"value", "floating", "integer", "mask", "any"};
  Json table = Json::object();
  for (const auto& [name, op] : builtin_ops().ops()) {
    Json inputs = Json::array(), attributes = Json::array();
    for (const InputSpec& input : op->inputs)
      inputs.push_back({{"name", input.name},
                        {"accepts", accepts[static_cast<int>(input.accept)]},
                        {"arity", arities[static_cast<int>(input.arity)]}});
    for (const AttributeSpec& spec : op->attributes) {
      Json attribute = {{"name", spec.name}, {"type", name_of(spec.type)}, {"doc", in_one_line(spec.doc)}};
      if (spec.initial) attribute["default"] = json_of(*spec.initial);
      attributes.push_back(attribute);
    }
    Json outputs = op->outputs;
    outputs.erase(outputs.end() - static_cast<std::ptrdiff_t>(op->derivative.kept), outputs.end());
    table[name] = {{"inputs", inputs}, {"attributes", attributes}, {"outputs", outputs}, {"doc", in_one_line(op->doc)}};
  }
  return table;
}
}  // namespace
}  // namespace xtape::c

using namespace xtape::c;
using xtape::Vars;

xtape_status xtape_op_table(const char** json) noexcept {
  return guarded("xtape_op_table", [&] {
    require(json, "json");
    *json = returned(table_json());
  });
}

xtape_status xtape_tape_new(const char* options, xtape_tape** tape) noexcept {
  return guarded("xtape_tape_new", [&] {
    require(tape, "tape");
    Options given(options);
    xtape::Mode mode = xtape::Mode::train;
    xtape::Dtype dtype = xtape::Dtype::float32;
    given.read_named("mode", mode, xtape::mode_named);
    given.read_named("dtype", dtype, xtape::dtype_named);
    given.done();
    give(tape, std::make_shared<TapeObject>(xtape::Tape(dtype, mode)));
  });
}

xtape_status xtape_tape_load(const char* path, const xtape_store* weights, xtape_tape** tape) noexcept {
  return guarded("xtape_tape_load", [&] {
    require(tape, "tape");
    const xtape::Store arrays = weights == nullptr ? xtape::Store() : use<StoreObject>(weights, "weights")->arrays;
    xtape::SavedTape saved = xtape::Tape::load(text_of(path, "path"), arrays);
    give(tape, std::make_shared<TapeObject>(saved.tape, std::move(saved.outputs)));
  });
}

xtape_status xtape_tape_save(const xtape_tape* tape, const char* path, const char* const* names,
                             const xtape_var* outputs, size_t count) noexcept {
  return guarded("xtape_tape_save", [&] {
    const Used<TapeObject> object = use<TapeObject>(tape, "tape");
    object->tape.save(text_of(path, "path"), object->named(names, outputs, count));
  });
}

xtape_status xtape_var_named(const xtape_tape* tape, const char* name, xtape_var* var) noexcept {
  return guarded("xtape_var_named", [&] {
    require(var, "var");
    const Used<TapeObject> object = use<TapeObject>(tape, "tape");
    *var = object->from(object->named(text_of(name, "name")));
  });
}

xtape_status xtape_var_type(const xtape_tape* tape, xtape_var var, xtape_dtype* dtype, int32_t* rank,
                            int64_t* shape) noexcept {
  return guarded("xtape_var_type", [&] {
    require(dtype, "dtype");
    require(rank, "rank");
    require(shape, "shape");
    const xtape::ValueType& type = use<TapeObject>(tape, "tape")->var(var, "var").type();
    *dtype = static_cast<xtape_dtype>(type.dtype);
    *rank = static_cast<int32_t>(type.shape.size());
    std::copy(type.shape.begin(), type.shape.end(), shape);
  });
}

xtape_status xtape_input(xtape_tape* tape, const char* name, xtape_dtype dtype, int32_t rank, const int64_t* shape,
                         xtape_var* var) noexcept {
  return guarded("xtape_input", [&] {
    const Used<TapeObject> object = use<TapeObject>(tape, "tape");
    const xtape::Dtype type = dtype_of(dtype);
    object->record(
        [&] { return Vars{object->tape.input(text_of(name, "name"), shape_of(rank, shape, type), type, caller())}; },
        var, 1, nullptr);
  });
}

xtape_status xtape_parameter(xtape_tape* tape, const xtape_store* store, const char* name, xtape_var* var) noexcept {
  return guarded("xtape_parameter", [&] {
    const Used<TapeObject> object = use<TapeObject>(tape, "tape");
    const Used<StoreObject> arrays = use<StoreObject>(store, "store");
    object->record([&] { return Vars{object->tape.parameter(arrays->arrays, text_of(name, "name"), caller())}; }, var,
                   1, nullptr);
  });
}

xtape_status xtape_constant(xtape_tape* tape, const xtape_view* values, xtape_var* var) noexcept {
  return guarded("xtape_constant", [&] {
    require(values, "values");
    const Used<TapeObject> object = use<TapeObject>(tape, "tape");
    object->record([&] { return Vars{object->tape.constant(array_view(*values, "values"), caller())}; }, var, 1,
                   nullptr);
  });
}

xtape_status xtape_op(xtape_tape* tape, const char* name, const xtape_var* operands, size_t operand_count,
                      const char* attributes, xtape_var* results, size_t capacity, size_t* count) noexcept {
  return guarded("xtape_op", [&] {
    const Used<TapeObject> object = use<TapeObject>(tape, "tape");
    require_list(operands, operand_count, "operands");
    const xtape::Op& op = xtape::builtin_ops().at(text_of(name, "name"));
    std::vector<xtape::Operand> list;
    list.reserve(operand_count);
    for (std::size_t i = 0; i < operand_count; ++i) list.push_back(object->operand(operands[i]));
    object->record([&] { return xtape::apply(object->tape, op, list, attributes_of(op, attributes), caller()); },
                   results, capacity, count);
  });
}
