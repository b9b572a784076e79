#include "xtape/safetensors.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include "files.hpp"
#include "json_text.hpp"
#include "threads.hpp"

namespace xtape {

namespace {
constexpr std::uint64_t largest_header = std::uint64_t{100} << 20;  // as the format's own reader allows

/// How the file's elements become ours.
struct Stored {
  std::size_t bytes;  ///< An element in the file.
  Dtype dtype;        ///< What it becomes.
  void (*convert)(const std::byte* from, void* to, std::int64_t count);
};

template <class T>
void copy(const std::byte* from, void* to, std::int64_t count) {
  if (count > 0) std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(T));
}

template <class From, class To>
void widen(const std::byte* from, void* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, from + i * static_cast<std::int64_t>(sizeof(From)), sizeof(From));
    static_cast<To*>(to)[i] = static_cast<To>(value);
  }
}

float float_of_bits(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// Without branches, so that loops over it become vector code. A half's exponent, moved to a float's place, is 112 too
/// small; infinities and NaNs lack as much again. Subnormals are numbers of the lowest exponent without their leading
/// 1: with one added they are a float, of which that 1 is then taken away.
float from_half(std::uint16_t half) {
  constexpr std::uint32_t rebias = 112U << 23;
  const std::uint32_t moved = (half & 0x7FFFU) << 13;
  const std::uint32_t exponent = moved & 0x0F800000U;
  const std::uint32_t normal = moved + rebias + (exponent == 0x0F800000U ? rebias : 0U);
  const float subnormal = float_of_bits(moved + rebias + (1U << 23)) - 0x1p-14F;
  std::uint32_t subnormal_bits;
  std::memcpy(&subnormal_bits, &subnormal, sizeof subnormal_bits);
  return float_of_bits((half & 0x8000U) << 16 | (exponent == 0 ? subnormal_bits : normal));
}

float from_bfloat(std::uint16_t bits) {
  return float_of_bits(static_cast<std::uint32_t>(bits) << 16);
}

template <float (*value_of)(std::uint16_t)>
void widen_float(const std::byte* from, void* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint16_t bits;
    std::memcpy(&bits, from + 2 * i, 2);
    static_cast<float*>(to)[i] = value_of(bits);
  }
}

void copy_flags(const std::byte* from, void* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) static_cast<bool*>(to)[i] = from[i] != std::byte{0};
}

const std::map<std::string, Stored>& stored_types() {
  static const std::map<std::string, Stored> types = {
      {"F32", {4, Dtype::float32, copy<float>}},
      {"F64", {8, Dtype::float64, copy<double>}},
      {"F16", {2, Dtype::float32, widen_float<from_half>}},
      {"BF16", {2, Dtype::float32, widen_float<from_bfloat>}},
      {"I64", {8, Dtype::int64, copy<std::int64_t>}},
      {"I32", {4, Dtype::int32, copy<std::int32_t>}},
      {"I16", {2, Dtype::int32, widen<std::int16_t, std::int32_t>}},
      {"I8", {1, Dtype::int32, widen<std::int8_t, std::int32_t>}},
      {"U32", {4, Dtype::int64, widen<std::uint32_t, std::int64_t>}},
      {"U16", {2, Dtype::int32, widen<std::uint16_t, std::int32_t>}},
      {"U8", {1, Dtype::int32, widen<std::uint8_t, std::int32_t>}},
      {"BOOL", {1, Dtype::boolean, copy_flags}},
  };
  return types;
}

const char* stored_name(Dtype dtype) {
  switch (dtype) {
    case Dtype::float32:
      return "F32";
    case Dtype::float64:
      return "F64";
    case Dtype::int32:
      return "I32";
    case Dtype::int64:
      return "I64";
    default:
      return "BOOL";
  }
}

/// An array as the header describes it, after all checks.
struct Described {
  std::string name;
  const Stored* stored;
  Shape shape;
  std::uint64_t first, last;  ///< Bytes after the header.
};

class Header {
 public:
  Header(const MappedFile& file, const std::string& path) : file_(file), path_(path) {}

  std::vector<Described> read() {
    const std::uint64_t size = file_.size();
    if (size < 8) fail("it has " + std::to_string(size) + " bytes, and a header needs 8 at least");
    std::uint64_t length = 0;
    for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<std::uint64_t>(file_.data()[i]);
    if (length > size - 8 || length > largest_header)
      fail("it says that its header has " + std::to_string(length) + " bytes, but " + std::to_string(size - 8) +
           " follow");
    data_ = 8 + length;
    std::vector<Described> arrays;
    const JsonText header(std::string(reinterpret_cast<const char*>(file_.data()) + 8, length),
                          "'" + path_ + "' is not a whole safetensors file: its header", JsonErrors::file);
    if (!header.root().is_object()) fail("its header is not a JSON object");
    for (const auto& [name, entry] : header.root().items())
      if (name != "__metadata__") arrays.push_back(described(name, entry));
    check_overlap(arrays);
    return arrays;
  }

  const std::byte* data() const { return file_.data() + data_; }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw FileError("'" + path_ + "' is not a whole safetensors file: " + why);
  }

  static bool is_count(const Json& value) {
    return value.is_number_unsigned() && value.get<std::uint64_t>() <= std::uint64_t{1} << 62;
  }

  Described described(const std::string& name, const Json& entry) const {
    const std::string where = "array '" + name + "' ";
    if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape") || !entry.contains("data_offsets"))
      fail(where + "has no dtype, shape and data_offsets");
    const Json& dtype = entry["dtype"];
    const Json& shape = entry["shape"];
    const Json& offsets = entry["data_offsets"];
    Described result{name, nullptr, {}, 0, 0};
    if (!dtype.is_string() || stored_types().count(dtype.get<std::string>()) == 0)
      fail(where + "has the dtype " + dtype.dump(-1, ' ', false, Json::error_handler_t::replace) +
           ", which xtape does not know");
    result.stored = &stored_types().at(dtype.get<std::string>());
    if (!shape.is_array() || shape.size() > Shape::max_rank || !std::all_of(shape.begin(), shape.end(), is_count))
      fail(where + "has a shape that is not a list of at most 10 sizes");
    if (!offsets.is_array() || offsets.size() != 2 || !is_count(offsets[0]) || !is_count(offsets[1]))
      fail(where + "has data_offsets that are not two integers");
    result.first = offsets[0].get<std::uint64_t>();
    result.last = offsets[1].get<std::uint64_t>();
    const std::uint64_t available = file_.size() - data_;
    if (result.first > result.last || result.last > available)
      fail(where + "should lie in bytes " + std::to_string(result.first) + " to " + std::to_string(result.last) +
           ", but " + std::to_string(available) + " follow the header");
    for (const Json& size : shape) result.shape.push_back(size.get<std::int64_t>());
    try {
      checked_bytes(result.stored->dtype, result.shape);
    } catch (const ShapeError&) {
      fail(where + "has too large a shape");
    }
    const std::uint64_t bytes = static_cast<std::uint64_t>(count_of(result.shape)) * result.stored->bytes;
    if (bytes != result.last - result.first)
      fail(where + "of shape " + to_string(result.shape) + " takes " + std::to_string(bytes) + " bytes, but has " +
           std::to_string(result.last - result.first));
    return result;
  }

  void check_overlap(const std::vector<Described>& arrays) const {
    std::vector<const Described*> sorted;
    for (const Described& each : arrays)
      if (each.last > each.first) sorted.push_back(&each);
    std::sort(sorted.begin(), sorted.end(), [](auto* a, auto* b) { return a->first < b->first; });
    for (std::size_t i = 1; i < sorted.size(); ++i)
      if (sorted[i]->first < sorted[i - 1]->last)
        fail("arrays '" + sorted[i - 1]->name + "' and '" + sorted[i]->name + "' overlap");
  }

  const MappedFile& file_;
  const std::string& path_;
  std::uint64_t data_ = 0;
};
}  // namespace

struct ArrayFile::Data {
  std::string path;
  MappedFile file;
  std::vector<Described> described;
  const std::byte* elements;
  std::vector<Entry> entries;

  explicit Data(const std::string& name) : path(name), file(name) {
    Header header(file, path);
    described = header.read();
    elements = header.data();
    for (const Described& each : described) entries.push_back({each.name, each.stored->dtype, each.shape});
  }
};

ArrayFile::ArrayFile(const std::string& path) : data_(std::make_unique<Data>(path)) {}
ArrayFile::ArrayFile(ArrayFile&&) noexcept = default;
ArrayFile& ArrayFile::operator=(ArrayFile&&) noexcept = default;
ArrayFile::~ArrayFile() = default;

const std::string& ArrayFile::path() const {
  return data_->path;
}
const std::vector<ArrayFile::Entry>& ArrayFile::entries() const {
  return data_->entries;
}

Array ArrayFile::read(std::size_t entry) const {
  const Described& described = data_->described.at(entry);
  Array array(described.stored->dtype, described.shape);
  read(entry, array);
  return array;
}

void ArrayFile::read(std::size_t entry, Array& into) const {
  const Described& described = data_->described.at(entry);
  if (into.dtype() != described.stored->dtype || into.shape() != described.shape)
    throw ShapeError("'" + described.name + "' of '" + data_->path + "' is " + name_of(described.stored->dtype) + " " +
                     to_string(described.shape) + ", and is not read into " + name_of(into.dtype()) + " " +
                     to_string(into.shape()));
  constexpr std::int64_t worth_a_thread = 1 << 20;  // bytes
  const auto element = static_cast<std::int64_t>(size_of(into.dtype()));
  const auto stored = static_cast<std::int64_t>(described.stored->bytes);
  auto* to = static_cast<std::byte*>(into.data());
  // Most of the time goes into the pages that are touched for the first time, on both sides.
  parallel_for(omp_get_max_threads(), into.count(), worth_a_thread, [&](std::int64_t begin, std::int64_t finish) {
    described.stored->convert(data_->elements + described.first + begin * stored, to + begin * element, finish - begin);
  });
}

Store load_arrays(const std::string& path) {
  const ArrayFile file(path);
  Store store;
  for (std::size_t i = 0; i < file.entries().size(); ++i) store.add(file.entries()[i].name, file.read(i));
  return store;
}

void save_arrays(const std::string& path, const Store& store,
                 const std::vector<std::pair<std::string, std::string>>& metadata) {
  Json header = Json::object();
  for (const auto& [name, text] : metadata) header["__metadata__"][name] = text;
  std::uint64_t offset = 0;
  for (const Store::Entry& entry : store.entries()) {
    Json shape = Json::array();
    for (const std::int64_t size : entry.array.shape()) shape.push_back(size);
    header[entry.name] = {{"dtype", stored_name(entry.array.dtype())},
                          {"shape", shape},
                          {"data_offsets", {offset, offset + entry.array.bytes()}}};
    offset += entry.array.bytes();
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const Json::exception&) {
    throw FileError("cannot write '" + path + "': a name is not UTF-8");
  }
  text.append((8 - text.size() % 8) % 8, ' ');  // so that the elements are aligned in memory
  char length[8];
  for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(text.size() >> 8 * i);
  ReplacedFile file(path);
  file.write(length, sizeof length);
  file.write(text.data(), text.size());
  for (const Store::Entry& entry : store.entries()) file.write(entry.array.data(), entry.array.bytes());
  file.commit();
}

}  // namespace xtape
