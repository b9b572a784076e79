#include "c/values.hpp"

#include <atomic>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

#include "xtape/op/op.hpp"
#include "xtape/precision.hpp"

namespace xtape::c {

static_assert(static_cast<int>(Dtype::float32) == XTAPE_FLOAT32 && static_cast<int>(Dtype::float64) == XTAPE_FLOAT64);
static_assert(static_cast<int>(Dtype::bfloat16) == XTAPE_BFLOAT16 && static_cast<int>(Dtype::float16) == XTAPE_FLOAT16);
static_assert(static_cast<int>(Dtype::int32) == XTAPE_INT32 && static_cast<int>(Dtype::int64) == XTAPE_INT64);
static_assert(static_cast<int>(Dtype::int8) == XTAPE_INT8 && static_cast<int>(Dtype::boolean) == XTAPE_BOOL);
static_assert(static_cast<int>(Dtype::q8_0) == XTAPE_Q8_0 && static_cast<int>(Dtype::q6_k) == XTAPE_Q6_K);
static_assert(Shape::max_rank == XTAPE_MAX_RANK);

Dtype dtype_of(xtape_dtype dtype) {
  if (dtype < XTAPE_FLOAT32 || dtype > XTAPE_Q6_K)
    throw DtypeError(std::to_string(dtype) + " is no dtype: XTAPE_FLOAT32 to XTAPE_Q6_K are 0 to 12");
  return static_cast<Dtype>(dtype);
}

Shape shape_of(std::int32_t rank, const std::int64_t* shape, Dtype dtype) {
  if (rank < 0) throw ShapeError("the rank is " + std::to_string(rank) + ", and must be at least 0");
  require_list(shape, static_cast<std::size_t>(rank), "shape");
  const Shape sizes(shape, shape + rank);
  static_cast<void>(checked_bytes(dtype, sizes));
  return sizes;
}

namespace {
std::size_t alignment_of(Dtype dtype) {
  return is_block(dtype) ? 1 : size_of(dtype);
}
}  // namespace

ArrayView array_view(const xtape_view& view, const char* argument) {
  const Dtype dtype = dtype_of(view.dtype);
  Layout layout = Layout::dense(shape_of(view.rank, view.shape, dtype));
  if (view.strides != nullptr) {
    if (is_block(dtype)) throw Error("'" + std::string(argument) + "' has strides, and blocks have none");
    layout.strides = Strides(view.strides, view.strides + view.rank);
  }
  if (view.data == nullptr && count_of(layout.shape) > 0)
    throw Error("'" + std::string(argument) + "' has no data: its pointer is null");
  if (reinterpret_cast<std::uintptr_t>(view.data) % alignment_of(dtype) != 0)
    throw Error("'" + std::string(argument) + "' is not aligned to the " + std::to_string(alignment_of(dtype)) +
                " bytes of an element");
  return ArrayView(view.data, dtype, layout);
}

xtape_view described(const ArrayView& view) {
  const Layout& layout = view.layout();
  auto* data = static_cast<std::byte*>(const_cast<void*>(view.data()));
  const bool block = is_block(view.dtype());
  if (data != nullptr && !block) data += layout.offset * static_cast<std::int64_t>(size_of(view.dtype()));
  return {data, static_cast<xtape_dtype>(view.dtype()), static_cast<std::int32_t>(layout.shape.size()),
          layout.shape.begin(), block ? nullptr : layout.strides.begin()};
}

Json json_of_type(Dtype dtype, const Shape& shape) {
  Json sizes = Json::array();
  for (const std::int64_t size : shape) sizes.push_back(size);
  return {{"dtype", name_of(dtype)}, {"shape", sizes}};
}

ArrayObject::ArrayObject(Array array)
    : Object(word), view(array), owner(std::make_shared<Array>(std::move(array))), writable(true) {}
ArrayObject::ArrayObject(const ArrayView& the_view, std::shared_ptr<void> the_owner, bool is_writable)
    : Object(word), view(the_view), owner(std::move(the_owner)), writable(is_writable) {}

Json ArrayObject::describe() const {
  Json json = json_of_type(view.dtype(), view.shape());
  json["writable"] = writable;
  return json;
}

Array ArrayObject::as_weight() const {
  const xtape_view elements = described(view);
  if (!writable) throw Error("the array is read-only: xtape_array_new makes a copy that can be written");
  const std::size_t alignment = is_block(view.dtype()) ? 1 : 64;
  if (!view.layout().contiguous() || reinterpret_cast<std::uintptr_t>(elements.data) % alignment != 0)
    throw Error("the array has gaps, or is not aligned to 64 bytes: xtape_array_new makes a copy that can be stored");
  if (elements.data == nullptr) return {view.dtype(), view.shape()};
  const std::shared_ptr<std::byte> memory(owner, static_cast<std::byte*>(elements.data));
  return {memory, view.dtype(), view.shape()};
}

Json StoreObject::describe() const {
  Json all = Json::object();
  for (const auto& [name, array] : arrays) all[name] = json_of_type(array.dtype(), array.shape());
  return all;
}

// Vars. Those of tapes have even numbers of tapes. A number has the tape 1 or 3, and its bits in `node` and `output`.

namespace {
constexpr std::uint32_t real_number = 1, whole_number = 3;

std::uint32_t new_tape_number() {
  static std::atomic<std::uint32_t> last = 0;
  return last += 2;
}

xtape_var number_var(std::uint32_t kind, std::uint64_t bits) {
  return {kind, 0, static_cast<std::int32_t>(bits), static_cast<std::int32_t>(bits >> 32U)};
}
std::uint64_t bits_of(const xtape_var& var) {
  return static_cast<std::uint32_t>(var.node) | std::uint64_t{static_cast<std::uint32_t>(var.output)} << 32U;
}
bool is_number(const xtape_var& var) {
  return var.tape == real_number || var.tape == whole_number;
}
}  // namespace

TapeObject::TapeObject(const Tape& the_tape, NamedVars the_outputs)
    : Object(word), tape(the_tape), outputs(std::move(the_outputs)), number_(new_tape_number()) {}

Json TapeObject::describe() const {
  std::ostringstream text;
  text << tape;
  return {{"mode", name_of(tape.mode())},
          {"dtype", name_of(tape.default_dtype())},
          {"nodes", tape.size()},
          {"text", text.str()}};
}

xtape_var TapeObject::from(const Var& var) const {
  if (var.empty()) return {};
  const ValueId id = var.id();
  return {number_, var.node().serial, id.node, id.output};
}

Var TapeObject::var(const xtape_var& var, const char* argument) const {
  const auto refuse = [&](const char* what) { throw HandleError("'" + std::string(argument) + "' " + what); };
  if (is_number(var)) refuse("has a number, and a var belongs here: a number is only an operand of an op");
  if (var.tape == 0) refuse("has no value: all members of the var are 0");
  if (var.tape != number_) refuse("has a var of another tape");
  const bool there = var.node >= 0 && static_cast<std::size_t>(var.node) < tape.size() &&
                     tape.node(static_cast<std::size_t>(var.node)).serial == var.serial;
  if (!there) refuse("has a stale var: its node is no longer on the tape");
  return tape.var({var.node, var.output});
}

Vars TapeObject::vars(const xtape_var* vars, std::size_t count, const char* argument) const {
  require_list(vars, count, argument);
  Vars found;
  found.reserve(count);
  for (std::size_t i = 0; i < count; ++i) found.push_back(var(vars[i], argument));
  return found;
}

NamedVars TapeObject::named(const char* const* names, const xtape_var* list, std::size_t count) const {
  require_list(names, count, "names");
  require_list(list, count, "outputs");
  NamedVars found;
  for (std::size_t i = 0; i < count; ++i) found.add(text_of(names[i], "names"), var(list[i], "outputs"));
  return found;
}

Var TapeObject::named(const std::string& name) const {
  NamedVars known = outputs;
  for (std::size_t i = 0; i < tape.size(); ++i) {
    const Node& node = tape.node(i);
    if (node.op == &input_op() || node.op == &parameter_op())
      known.set(node.name, tape.var({static_cast<std::int32_t>(i), 0}));
  }
  return known.at(name);
}

Operand TapeObject::operand(const xtape_var& given) const {
  if (given.tape == real_number) return {std::bit_cast<double>(bits_of(given)), caller()};
  if (given.tape == whole_number) return {std::bit_cast<std::int64_t>(bits_of(given)), caller()};
  return {var(given, "operands"), caller()};
}

void TapeObject::write(const Vars& vars, xtape_var* results, std::size_t capacity, std::size_t* count) const {
  if (vars.size() > capacity || (count == nullptr && vars.size() != capacity))
    throw Error("there are " + std::to_string(vars.size()) + " results, and 'results' has room for " +
                std::to_string(capacity));
  for (std::size_t i = 0; i < vars.size(); ++i) results[i] = from(vars[i]);
  if (count != nullptr) *count = vars.size();
}

std::vector<Feed>& feeds_of(const TapeObject& tape, const xtape_var* inputs, const xtape_view* values,
                            std::size_t count, std::vector<Feed>& feeds) {
  require_list(inputs, count, "inputs");
  require_list(values, count, "values");
  feeds.clear();
  for (std::size_t i = 0; i < count; ++i)
    feeds.emplace_back(tape.var(inputs[i], "inputs"), array_view(values[i], "values"));
  return feeds;
}

void read_player_options(Options& options, PlayerOptions& player) {
  std::int64_t threads = player.threads, memory = 0;
  bool reference = false;
  options->read("threads", threads, {0, 4096});
  options->read("seed", player.seed);
  options.read_named("precision", player.precision, precision_named);
  options.read_named("bits", player.bits, bits_named);
  options->read("memory", memory, {0, INT64_MAX});
  options->read("reference", reference);
  player.threads = static_cast<int>(threads);
  player.memory = static_cast<std::size_t>(memory);
  if (reference) player.passes = Passes::reference();
}

}  // namespace xtape::c

using namespace xtape::c;

xtape_var xtape_number(double value) noexcept {
  return number_var(real_number, std::bit_cast<std::uint64_t>(value));
}

xtape_var xtape_integer(int64_t value) noexcept {
  return number_var(whole_number, std::bit_cast<std::uint64_t>(value));
}
