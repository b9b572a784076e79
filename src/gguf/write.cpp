#include "gguf/write.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <utility>

#include "base/arrays/lengths.hpp"
#include "base/system/files.hpp"
#include "base/threads/threads.hpp"

namespace xtape::gguf {

namespace {
template <class T>
void add(std::string& to, T number) {
  to.append(reinterpret_cast<const char*>(&number), sizeof number);
}
void add(std::string& to, const std::string& text) {
  add(to, static_cast<std::uint64_t>(text.size()));
  to += text;
}
void add(std::string& to, Type type) {
  add(to, static_cast<std::uint32_t>(type));
}

Type type_of(const Json& value, bool element) {
  if (value.is_array()) return Type::array;
  if (value.is_string()) return Type::text;
  if (value.is_boolean()) return Type::flag;
  if (!value.is_number()) throw DefinitionError("a GGUF file cannot hold " + shown(value));
  return value.is_number_float() ? Type::f32 : element ? Type::i32 : Type::u32;
}

/// The type of the elements of a list. One float makes all floats.
Type type_of_elements(const Json& list) {
  if (std::ranges::any_of(list, [](const Json& each) { return each.is_number_float(); })) return Type::f32;
  return list.empty() ? Type::text : type_of(list[0], true);
}

template <class T>
T whole(const Json& value) {
  const auto number = value.get<std::int64_t>();
  if (!std::in_range<T>(number)) throw DefinitionError("a GGUF file cannot hold " + shown(value) + " in 32 bits");
  return static_cast<T>(number);
}

void add_value(std::string& to, const Json& value, Type type) {
  if (type == Type::text) return add(to, value.get_ref<const std::string&>());
  if (type == Type::flag) return add(to, static_cast<std::uint8_t>(value.get<bool>()));
  if (type == Type::f32) return add(to, value.get<float>());
  if (type == Type::i32) return add(to, whole<std::int32_t>(value));
  if (type == Type::u32) return add(to, whole<std::uint32_t>(value));
  const Type elements = type_of_elements(value);
  add(to, elements);
  add(to, static_cast<std::uint64_t>(value.size()));
  for (const Json& each : value) add_value(to, each, elements);
}

std::int64_t bytes_of(const Written& tensor) {
  return count_of(tensor.shape) / tensor.format->elements * tensor.format->bytes;
}

std::string header_of(const Metadata& metadata, const std::vector<Written>& tensors) {
  std::string header;
  add(header, magic);
  add(header, std::uint32_t{3});
  add(header, static_cast<std::uint64_t>(tensors.size()));
  add(header, static_cast<std::uint64_t>(metadata.size()));
  for (const auto& [key, value] : metadata) {
    add(header, key);
    add(header, type_of(value, false));
    add_value(header, value, type_of(value, false));
  }
  std::int64_t offset = 0;
  for (const Written& tensor : tensors) {
    add(header, tensor.name);
    add(header, static_cast<std::uint32_t>(tensor.shape.size()));
    for (std::size_t i = tensor.shape.size(); i-- > 0;) add(header, static_cast<std::uint64_t>(tensor.shape[i]));
    add(header, tensor.format->number);
    add(header, static_cast<std::uint64_t>(offset));
    offset += round_up(bytes_of(tensor), usual_alignment);
  }
  return header;
}

/// Encodes blocks on all threads. Throws FileError if a number is not finite after rounding, where it should be.
std::string encoded(const Written& tensor, const Array& values) {
  const BlockFormat& format = *tensor.format;
  const std::int64_t blocks = count_of(tensor.shape) / format.elements;
  std::string bytes(static_cast<std::size_t>(blocks * format.bytes), '\0');
  auto* to = reinterpret_cast<std::byte*>(bytes.data());
  const bool exact = format.bytes == 4 && format.elements == 1;  // float32 keeps whatever it is
  std::atomic<bool> finite = true;
  const std::int64_t grain = std::max<std::int64_t>(1, 4096 / format.elements);
  parallel_for(thread_count(), blocks, grain, [&](std::int64_t begin, std::int64_t end) {
    float back[256];
    for (std::int64_t i = begin; i < end; ++i) {
      const float* from = values.as<float>() + i * format.elements;
      bool fine = true;
      for (std::int64_t k = 0; k < format.elements; ++k) fine = fine && std::isfinite(from[k]);
      if (fine || exact) format.encode(from, to + i * format.bytes, 1);
      if (fine && !exact) {
        format.decode(to + i * format.bytes, back, 1);
        for (std::int64_t k = 0; k < format.elements; ++k) fine = fine && std::isfinite(back[k]);
      }
      if (!fine && !exact) finite = false;
    }
  });
  if (!finite)
    throw FileError("tensor '" + tensor.name + "' has numbers that are not finite, or are beyond the range of " +
                    format.name + ": write it as F32");
  return bytes;
}
}  // namespace

void write_file(const std::string& path, const Metadata& metadata, const std::vector<Written>& tensors) {
  ReplacedFile file(path);
  const auto write_padded = [&](std::string bytes) {
    bytes.resize(round_up(bytes.size(), static_cast<std::size_t>(usual_alignment)));
    file.write(bytes.data(), bytes.size());
  };
  write_padded(header_of(metadata, tensors));
  for (const Written& tensor : tensors) write_padded(encoded(tensor, tensor.values()));
  file.commit();
}

}  // namespace xtape::gguf
