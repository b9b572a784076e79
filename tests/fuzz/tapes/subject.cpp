#include "subject.hpp"

#include <algorithm>
#include <cstring>

#include "own_ops.hpp"
#include "random.hpp"
#include "xtape/ops.hpp"

namespace xtape::fuzz {

namespace {
OpTable usual_ops() {
  OpTable table = builtin_ops();
  list_own_ops(table);
  return table;
}
OpTable& current_ops() {
  static OpTable table = usual_ops();
  return table;
}
}  // namespace

const OpTable& ops() {
  return current_ops();
}

OpsGuard::OpsGuard(const std::vector<const Op*>& more) {
  for (const Op* op : more) current_ops().add(*op);
}
OpsGuard::~OpsGuard() {
  current_ops() = usual_ops();
}

Array made(const ValueType& type, const Numbers& numbers, std::uint64_t play) {
  Array array(type.dtype, type.shape);
  const std::uint64_t key = mixed(numbers.seed) + mixed(play * 7919);
  const auto levels = static_cast<std::uint64_t>(numbers.levels > 1 ? numbers.levels : std::int64_t{1} << 20);
  for (std::int64_t i = 0; i < array.count(); ++i) {
    const std::uint64_t bits = mixed(key ^ mixed(static_cast<std::uint64_t>(i)));
    const double place = static_cast<double>(bits % levels) / static_cast<double>(levels - 1);
    const double real = static_cast<float>(numbers.low + (numbers.high - numbers.low) * place);
    const auto span = static_cast<std::uint64_t>(std::max(1.0, numbers.high - numbers.low + 1));
    const std::int64_t whole = static_cast<std::int64_t>(numbers.low) + static_cast<std::int64_t>(bits % span);
    switch (type.dtype) {
      case Dtype::float32:
        array.as<float>()[i] = static_cast<float>(real);
        break;
      case Dtype::float64:
        array.as<double>()[i] = real;
        break;
      case Dtype::int32:
        array.as<std::int32_t>()[i] = static_cast<std::int32_t>(whole);
        break;
      case Dtype::int64:
        array.as<std::int64_t>()[i] = whole;
        break;
      case Dtype::bfloat16:
        array.as<bfloat16>()[i] = bfloat16(real);
        break;
      case Dtype::float16:
        array.as<float16>()[i] = float16(real);
        break;
      case Dtype::int8:
        array.as<std::int8_t>()[i] = static_cast<std::int8_t>(whole);
        break;
      case Dtype::boolean:
        array.as<bool>()[i] = bits % 5 < 2;
        break;
      default:
        throw DtypeError(std::string("no numbers are drawn for ") + name_of(type.dtype));
    }
  }
  return array;
}

Dtype Subject::dtype(Dtype written) const {
  if (!is_floating(written) || is_half(written) || floats_ == Floats::as_written) return written;
  return floats_ == Floats::single ? Dtype::float32 : Dtype::float64;
}

Array Subject::numbers_for(const ValueType& type, const Numbers& numbers, std::uint64_t play) const {
  Array array = made(type, numbers, play);
  const double most = floats_ == Floats::moved ? 0x1p-22 : floats_ == Floats::nudged ? 0x1p-45 : 0;
  if (most == 0 || type.dtype != Dtype::float64) return array;
  const Array by = made(type, {-1, 1, mixed(numbers.seed)}, play);
  for (std::int64_t i = 0; i < array.count(); ++i) array.as<double>()[i] *= 1 + by.as<double>()[i] * most;
  return array;
}

Var Subject::replaced(const ValueType& type, const Numbers& numbers) {
  if (how_ == Sources::as_written) return {};
  Numbers own = numbers;
  own.levels = 0;  // equal numbers are kinks
  return how_ == Sources::inputs ? input_of(type, own) : constant_of(type, own);
}

Var Subject::input(const ValueType& type, const Numbers& numbers) {
  const Var other = replaced(type, numbers);
  return sources.emplace_back(other.empty() ? input_of(type, numbers) : other);
}

Var Subject::input_of(const ValueType& type, const Numbers& numbers) {
  const ValueType own = mapped(type);
  inputs.push_back(tape.input("x" + std::to_string(inputs.size()), own.shape, own.dtype));
  numbers_.push_back(numbers);
  return inputs.back();
}

Var Subject::parameter(const ValueType& type, const Numbers& numbers) {
  const Var other = replaced(type, numbers);
  if (!other.empty()) return sources.emplace_back(other);
  const std::string name = "w" + std::to_string(tape.size());
  return sources.emplace_back(tape.parameter(name, numbers_for(mapped(type), numbers, 0)));
}

Var Subject::constant(const ValueType& type, const Numbers& numbers) {
  const Var other = replaced(type, numbers);
  return sources.emplace_back(other.empty() ? constant_of(type, numbers) : other);
}

Var Subject::constant_of(const ValueType& type, const Numbers& numbers) {
  return tape.constant(numbers_for(mapped(type), numbers, 0));
}

Var Subject::tokens(const Shape& shape, std::int64_t capacity, const Numbers& numbers) {
  const Var tokens = input({Dtype::int64, shape}, numbers);
  const double most = static_cast<double>(capacity - shape[1]);
  tape.set_past(tokens, input({Dtype::int64, {shape[0]}}, {0, most, mixed(numbers.seed)}), capacity);
  return tokens;
}

void Subject::carry(const Var& input, const Var& output) {
  carries.push_back({input, output.dtype() == input.dtype() ? output : cast(output, input.dtype())});
}

void Subject::carry_states() {
  for (const Carry& state : tape.states()) carries.push_back(state);
}

Vars Subject::call(const std::string& op, const std::vector<Operand>& operands, const Attributes& attributes) {
  Attributes own;
  for (const auto& [name, value] : attributes.items()) {
    const auto* written = std::get_if<Dtype>(&value);
    own.set(name, written != nullptr ? Attribute(dtype(*written)) : value);
  }
  return apply(tape, ops().at(op), operands, own);
}

void Subject::avoid_ties() {
  for (Numbers& numbers : numbers_) numbers.levels = 0;
  fed_.clear();
}

void Subject::start(Player& player) const {
  for (const Carry& carry : carries)
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].id() != carry.input.id()) continue;
      const Array first = numbers_for(inputs[i].type(), numbers_[i], 0);
      try {
        Array state = player.carried(carry.input);
        std::memcpy(state.data(), first.data(), first.bytes());
      } catch (const Error&) {  // the input is not used, so it has no state
      }
    }
}

std::vector<Feed> Subject::feeds(std::size_t play) const {
  while (fed_.size() <= play) {
    std::vector<Array> arrays;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      arrays.push_back(numbers_for(inputs[i].type(), numbers_[i], fed_.size()));
    fed_.push_back(std::move(arrays));
  }
  std::vector<Feed> result;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool carried = std::any_of(carries.begin(), carries.end(),
                                     [&](const Carry& carry) { return carry.input.id() == inputs[i].id(); });
    if (!carried) result.emplace_back(inputs[i], fed_[play][i]);
  }
  return result;
}

}  // namespace xtape::fuzz
