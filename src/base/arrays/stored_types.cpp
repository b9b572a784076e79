#include <algorithm>
#include <cstring>
#include <map>

#include "base/arrays/safetensors_header.hpp"

namespace xtape {

namespace {
template <class From, class To>
void widen(const std::byte* from, void* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, from + i * static_cast<std::int64_t>(sizeof(From)), sizeof(From));
    static_cast<To*>(to)[i] = static_cast<To>(value);
  }
}

void copy_flags(const std::byte* from, void* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) static_cast<bool*>(to)[i] = from[i] != std::byte{0};
}

const std::map<std::string, Stored>& types() {
  static const std::map<std::string, Stored> all = {
      {"F32", {4, Dtype::float32, nullptr}},
      {"F64", {8, Dtype::float64, nullptr}},
      {"F16", {2, Dtype::float16, nullptr}},
      {"BF16", {2, Dtype::bfloat16, nullptr}},
      {"I64", {8, Dtype::int64, nullptr}},
      {"I32", {4, Dtype::int32, nullptr}},
      {"I16", {2, Dtype::int32, widen<std::int16_t, std::int32_t>}},
      {"I8", {1, Dtype::int8, nullptr}},
      {"U32", {4, Dtype::int64, widen<std::uint32_t, std::int64_t>}},
      {"U16", {2, Dtype::int32, widen<std::uint16_t, std::int32_t>}},
      {"U8", {1, Dtype::int32, widen<std::uint8_t, std::int32_t>}},
      {"BOOL", {1, Dtype::boolean, copy_flags}},
  };
  return all;
}
}  // namespace

const Stored* stored_type(const std::string& name) {
  const auto found = types().find(name);
  return found == types().end() ? nullptr : &found->second;
}

std::string stored_names() {
  std::string names;
  for (const auto& type : types()) names += (names.empty() ? "" : ", ") + type.first;
  return names;
}

Conversion widening(Dtype from, Dtype to) {
  const auto of_half = [to](auto half) -> Conversion {
    using From = decltype(half);
    return to == Dtype::float32 ? widen<From, float> : to == Dtype::float64 ? widen<From, double> : nullptr;
  };
  return from == Dtype::bfloat16 ? of_half(bfloat16{}) : from == Dtype::float16 ? of_half(float16{}) : nullptr;
}

const char* stored_name(Dtype dtype) {
  const auto found = std::find_if(types().begin(), types().end(), [&](const auto& type) {
    return type.second.dtype == dtype && type.second.bytes == size_of(dtype);
  });
  return found->first.c_str();
}

}  // namespace xtape
