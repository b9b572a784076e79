#include "gguf/reading.hpp"

#include <algorithm>
#include <cstring>

#include "base/messages/wording.hpp"

namespace xtape::gguf {

namespace {
/// The formats of ggml that are not read, for errors.
const char* format_name(std::uint32_t number) {
  static const std::pair<std::uint32_t, const char*> names[] = {
      {9, "Q8_1"},   {15, "Q8_K"},  {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"}, {19, "IQ1_S"}, {20, "IQ4_NL"},
      {21, "IQ3_S"}, {22, "IQ2_S"}, {23, "IQ4_XS"},  {24, "I8"},     {25, "I16"},     {26, "I32"},   {27, "I64"},
      {28, "F64"},   {29, "IQ1_M"}, {34, "TQ1_0"},   {35, "TQ2_0"},  {39, "MXFP4"},   {40, "NVFP4"}};
  for (const auto& [known, name] : names)
    if (known == number) return name;
  return nullptr;
}

/// The least number of bytes of a value.
std::uint64_t bytes_of(Type type) {
  static constexpr std::uint8_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};
  return sizes[static_cast<std::size_t>(type)];
}
}  // namespace

void PartReader::fail(const std::string& message) const {
  throw FileError(escaped("'" + part_.path() + "'" + (owner_.empty() ? "" : ", " + owner_) + ", byte " +
                          std::to_string(at_) + ": " + message));
}

void PartReader::need(std::uint64_t count, std::uint64_t size, const std::string& what) const {
  const std::uint64_t left = bytes_.size() - at_;
  if (count > left / size)
    fail(what +
         (size == 1 ? " of " + std::to_string(count) + " bytes"
                    : ", " + std::to_string(count) + " of at least " + std::to_string(size) + " bytes each,") +
         " do not fit into the " + std::to_string(left) + " bytes that are left: the file is truncated or damaged");
}

template <class T>
T PartReader::number() {
  need(sizeof(T), 1, "a number");
  T read;
  std::memcpy(&read, bytes_.data() + at_, sizeof read);
  at_ += sizeof read;
  return read;
}

std::string PartReader::text(const std::string& what) {
  const auto length = number<std::uint64_t>();
  need(length, 1, what);
  std::string read(reinterpret_cast<const char*>(bytes_.data() + at_), length);
  at_ += length;
  return read;
}

Json PartReader::value(Type type, int depth) {
  switch (type) {
    case Type::u8:
      return number<std::uint8_t>();
    case Type::i8:
      return number<std::int8_t>();
    case Type::u16:
      return number<std::uint16_t>();
    case Type::i16:
      return number<std::int16_t>();
    case Type::u32:
      return number<std::uint32_t>();
    case Type::i32:
      return number<std::int32_t>();
    case Type::f32:
      return shortest_double(number<float>());
    case Type::u64:
      return number<std::uint64_t>();
    case Type::i64:
      return number<std::int64_t>();
    case Type::f64:
      return number<double>();
    case Type::text:
      return text("a text");
    case Type::array:
      return list(depth);
    case Type::flag:
      break;
  }
  const auto flag = number<std::uint8_t>();
  if (flag > 1) fail("a flag is 0 or 1, not " + std::to_string(flag));
  return flag == 1;
}

Json PartReader::list(int depth) {
  if (depth == deepest) fail("arrays are nested more than " + std::to_string(deepest) + " deep");
  const auto type = number<std::uint32_t>();
  if (type > static_cast<std::uint32_t>(Type::f64))
    fail("an array has elements of type " + std::to_string(type) + "; there are types 0 to 12");
  const auto count = number<std::uint64_t>();
  need(count, bytes_of(static_cast<Type>(type)), "the elements of an array");
  Json elements = Json::array();
  elements.get_ref<Json::array_t&>().reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) elements.push_back(value(static_cast<Type>(type), depth + 1));
  return elements;
}

void PartReader::read_metadata(std::uint64_t count) {
  constexpr std::uint64_t least = 8 + 4 + 1;  // the length of a key, the type, and a value
  need(count, least, "the keys");
  std::vector<std::pair<std::string, Json>> entries;  // ordered JSON would search all keys for each insertion
  for (std::uint64_t i = 0; i < count; ++i) {
    owner_ = "key " + std::to_string(i + 1) + " of " + std::to_string(count);
    std::string key = text("a key");
    if (key.empty() || key.size() > 1000) fail("a key has 1 to 1000 bytes, not " + std::to_string(key.size()));
    owner_ = "key '" + key + "'";
    const auto type = number<std::uint32_t>();
    if (type > static_cast<std::uint32_t>(Type::f64))
      fail("the type of the value is " + std::to_string(type) + "; there are types 0 to 12");
    if (!data_.index.emplace(key, i).second) fail("the key is there twice");
    entries.emplace_back(std::move(key), value(static_cast<Type>(type), 0));
  }
  data_.index.clear();
  for (auto& [key, value] : entries) {
    data_.keys.push_back(key);
    data_.metadata.get_ref<Json::object_t&>().emplace_back(std::move(key), std::move(value));
  }
}

PartReader::Described PartReader::read_tensor() {
  GgufFile::Tensor tensor;
  tensor.name = text("the name of a tensor");
  owner_ = "tensor '" + tensor.name + "'";
  const auto axes = number<std::uint32_t>();
  constexpr std::uint32_t most_axes = 4;
  if (axes > most_axes) fail("it has " + std::to_string(axes) + " axes; there are at most 4");
  std::int64_t elements = 1;
  for (std::uint32_t i = 0; i < axes; ++i) {
    const auto size = number<std::uint64_t>();
    if (size == 0 || size > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max() / elements))
      fail("a size is " + std::to_string(size) + ": sizes are at least 1, and their product has less than 64 bits");
    elements *= static_cast<std::int64_t>(size);
    tensor.shape.insert(0, static_cast<std::int64_t>(size));
  }
  const auto type = number<std::uint32_t>();
  const BlockFormat* format = find_block_format(type);
  if (format == nullptr) {
    const char* name = format_name(type);
    fail("its format is " + (name == nullptr ? "unknown: number " + std::to_string(type) : std::string(name)) +
         ", which xtape does not read; it reads " + joined(block_formats(), &BlockFormat::name));
  }
  tensor.format = format->name;
  const std::int64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
  if (row % format->elements != 0)
    fail("its rows have " + std::to_string(row) + " numbers, which is no multiple of the " +
         std::to_string(format->elements) + " of a block of " + format->name);
  const std::int64_t blocks = elements / format->elements;
  need(static_cast<std::uint64_t>(blocks), static_cast<std::uint64_t>(format->bytes), "its blocks");
  if (!data_.index.emplace(tensor.name, data_.tensors.size()).second) fail("two tensors have this name");
  const auto offset = number<std::uint64_t>();
  data_.tensors.push_back(std::move(tensor));
  data_.formats.push_back(format);
  data_.elements.emplace_back(static_cast<const std::byte*>(nullptr), static_cast<std::size_t>(blocks * format->bytes));
  data_.places.push_back(&part_);
  return {data_.tensors.size() - 1, offset};
}

void PartReader::place_tensors(const std::vector<Described>& described) {
  const std::int64_t alignment =
      data_.find(alignment_key) == nullptr ? usual_alignment : data_.integer(alignment_key, 1, 1 << 20);
  if ((alignment & (alignment - 1)) != 0)
    fail("the key '" + std::string(alignment_key) + "' must be a power of two, not " + std::to_string(alignment));
  const auto step = static_cast<std::uint64_t>(alignment);
  const std::uint64_t first = (at_ + step - 1) / step * step;
  std::vector<Described> sorted = described;
  std::ranges::sort(sorted, {}, &Described::offset);
  std::uint64_t end = 0;
  const Described* before = nullptr;
  for (const Described& each : sorted) {
    const std::uint64_t size = data_.elements[each.tensor].size();
    owner_ = "tensor '" + data_.tensors[each.tensor].name + "'";
    if (each.offset % step != 0)
      fail("it begins at offset " + std::to_string(each.offset) + ", which is no multiple of the alignment " +
           std::to_string(alignment));
    const std::uint64_t there = bytes_.size() > first ? bytes_.size() - first : 0;
    if (each.offset > there || size > there - each.offset)
      fail("its " + std::to_string(size) + " bytes at offset " + std::to_string(each.offset) + " are not within the " +
           std::to_string(there) + " bytes of elements: the file is truncated or damaged");
    if (before != nullptr && each.offset < end)
      fail("it begins at offset " + std::to_string(each.offset) + ", inside tensor '" +
           data_.tensors[before->tensor].name + "', which ends at " + std::to_string(end));
    data_.elements[each.tensor] = bytes_.subspan(first + each.offset, size);
    end = each.offset + size;
    before = &each;
  }
}

void PartReader::read() {
  if (bytes_.size() < 4 || number<std::uint32_t>() != magic) {
    at_ = 0;
    fail("a GGUF file begins with the letters GGUF: this is no GGUF file");
  }
  data_.version = number<std::uint32_t>();
  if (data_.version != 2 && data_.version != 3)
    fail((data_.version & 0xFFFFU) == 0 ? "the file is big-endian: convert it with gguf-convert-endian"
                                        : "the version is " + std::to_string(data_.version) +
                                              "; xtape reads versions 2 and 3: convert the model again");
  const auto tensors = number<std::uint64_t>();
  const auto keys = number<std::uint64_t>();
  read_metadata(keys);
  owner_.clear();
  constexpr std::uint64_t least = 8 + 4 + 4 + 8;  // of the description of a tensor without axes
  need(tensors, least, "the descriptions of tensors");
  std::vector<Described> described;
  for (std::uint64_t i = 0; i < tensors; ++i) {
    owner_ = "tensor " + std::to_string(i + 1) + " of " + std::to_string(tensors);
    described.push_back(read_tensor());
  }
  place_tensors(described);
}

}  // namespace xtape::gguf
