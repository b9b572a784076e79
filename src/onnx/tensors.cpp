// TensorProto: arrays in the element type of the file. The elements are inside the message or in a separate file.
#include <algorithm>
#include <cstring>
#include <exception>
#include <filesystem>
#include <mutex>

#include "base/arrays/safetensors_header.hpp"
#include "base/system/files.hpp"
#include "base/system/process_memory.hpp"
#include "base/threads/threads.hpp"
#include "onnx/messages.hpp"
#include "onnx/wire.hpp"

namespace xtape::onnx {

namespace {
// a multiple of the size of a huge page, so that no two threads share one
constexpr std::int64_t piece = std::int64_t{4} << 20;
}  // namespace

void read_pieces(const OpenFile& file, std::uint64_t offset, void* to, std::size_t count) {
  std::exception_ptr failure;
  std::mutex mutex;
  parallel_for(thread_count(), static_cast<std::int64_t>(count), piece, [&](std::int64_t begin, std::int64_t finish) {
    try {
      file.read(offset + static_cast<std::uint64_t>(begin), static_cast<char*>(to) + begin,
                static_cast<std::size_t>(finish - begin));
    } catch (...) {
      const std::lock_guard<std::mutex> lock(mutex);
      failure = std::current_exception();
    }
  });
  if (failure) std::rethrow_exception(failure);
}

void copy_pieces(void* to, const void* from, std::size_t count) {
  parallel_for(thread_count(), static_cast<std::int64_t>(count), piece, [&](std::int64_t begin, std::int64_t finish) {
    std::memcpy(static_cast<char*>(to) + begin, static_cast<const char*>(from) + begin,
                static_cast<std::size_t>(finish - begin));
  });
}

Array file_bytes(const std::string& path) {
  const OpenFile file(path);
  require_memory_left(static_cast<std::size_t>(file.size()), "'" + path + "'");
  Array bytes(Dtype::int8, {std::ssize(file)});
  read_pieces(file, 0, bytes.data(), static_cast<std::size_t>(file.size()));
  return bytes;
}

namespace {
/// An element type, and the name of this type in safetensors files. The name selects a conversion that is written for
/// safetensors files and reused here.
struct Known {
  Element element;
  const char* stored;
};
constexpr Known known_elements[] = {{Element::float32, "F32"},  {Element::uint8, "U8"},     {Element::int8, "I8"},
                                    {Element::uint16, "U16"},   {Element::int16, "I16"},    {Element::int32, "I32"},
                                    {Element::int64, "I64"},    {Element::boolean, "BOOL"}, {Element::float16, "F16"},
                                    {Element::float64, "F64"},  {Element::uint32, "U32"},   {Element::uint64, "I64"},
                                    {Element::bfloat16, "BF16"}};

const Stored& stored_element(std::int64_t element, const std::string& what) {
  for (const Known& known : known_elements)
    if (static_cast<std::int64_t>(known.element) == element) return *stored_type(known.stored);
  const bool is_string = element == static_cast<std::int64_t>(Element::string);
  throw DtypeError(what + (is_string      ? " has strings, which are not supported"
                           : element == 0 ? " has no element type"
                                          : " has the element type " + std::to_string(element) +
                                                ": xtape has floats of 16 to 64 bits, integers and bool"));
}

/// Appends the low `bytes` bytes of a number in the format of raw data.
template <class T>
void append(std::string& raw, T number, std::size_t bytes = sizeof(T)) {
  raw.append(reinterpret_cast<const char*>(&number), bytes);
}

/// The location of external data, in a file beside the model.
struct External {
  std::string location;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length;
};

std::uint64_t number_in(const std::string& text) {
  std::uint64_t number = 0;
  if (text.empty()) throw FileError("external data has an offset or length without digits");
  for (const char digit : text)
    if (digit < '0' || digit > '9' || __builtin_mul_overflow(number, std::uint64_t{10}, &number) ||
        __builtin_add_overflow(number, static_cast<std::uint64_t>(digit - '0'), &number))
      throw FileError("external data has the offset or length '" + text + "', which is no number");
  return number;
}

void read_external(Message message, External& external) {
  std::string key, value;
  read_fields(message, read_string(1, key), read_string(2, value));
  if (key == "location") external.location = value;
  if (key == "offset") external.offset = number_in(value);
  if (key == "length") external.length = number_in(value);
}

/// Returns whether `path` lies inside a folder. Both must be free of symbolic links.
bool is_inside(const std::filesystem::path& path, const std::filesystem::path& folder) {
  const std::filesystem::path rest = path.lexically_relative(folder);
  return !rest.empty() && *rest.begin() != "..";
}

/// Returns the path of external data of a model. Models must not be able to make the program read files elsewhere, nor
/// by symbolic links. If the model itself is a link, as in a cache of downloads, its data may be beside its target.
std::string external_path(const std::string& location, const std::string& model) {
  namespace fs = std::filesystem;
  const fs::path relative(location), folder = fs::path(model).parent_path(), path = folder / relative;
  bool inside = !location.empty() && relative.is_relative() && location.find('\0') == std::string::npos;
  for (const auto& part : relative) inside = inside && part != "..";
  std::error_code missing, none;  // that the file is missing is an error of its own
  const fs::path target = inside ? fs::canonical(path, missing) : fs::path();
  if (inside && !missing)
    inside = is_inside(target, fs::canonical(folder.empty() ? "." : folder, none)) ||
             is_inside(target, fs::canonical(model, none).parent_path());
  if (!inside) throw FileError("external data '" + location + "' is not in the folder of the model");
  return path.string();
}

/// Calls take(file) with the file of external data. The file has `wanted` bytes at the offset.
template <class Take>
void open_external(const External& external, std::size_t wanted, const std::string& model, const Take& take) {
  if (external.length.value_or(wanted) != wanted)
    throw FileError("external data has " + std::to_string(*external.length) + " bytes, not " + std::to_string(wanted));
  const OpenFile file(external_path(external.location, model));
  if (external.offset > file.size() || file.size() - external.offset < wanted)
    throw FileError("'" + external.location + "' ends before the " + std::to_string(wanted) + " bytes at " +
                    std::to_string(external.offset));
  require_memory_left(wanted, "external data '" + external.location + "'");
  take(file);
}

/// Converts the elements of the typed lists to raw data.
std::string typed_bytes(Message message, std::size_t bytes) {
  std::string raw;
  const auto take = [&](auto number) { append(raw, number); };
  const auto take_int32 = [&](std::int32_t number) { append(raw, number, std::min(bytes, sizeof number)); };
  const auto take_uint64 = [&](std::uint64_t number) { append(raw, number, bytes); };
  read_fields(message, list_field<&Message::get_float, &Message::get_packed_float>(4, single_field(4), take),
              list_field<&Message::get_int32, &Message::get_packed_int32>(5, number_field(5), take_int32),
              list_field<&Message::get_int64, &Message::get_packed_int64>(7, number_field(7), take),
              list_field<&Message::get_double, &Message::get_packed_double>(10, double_field(10), take),
              list_field<&Message::get_uint64, &Message::get_packed_uint64>(11, number_field(11), take_uint64));
  return raw;
}

/// Returns the number of bytes of an array in the file.
std::size_t bytes_of(const Stored& stored, const Shape& shape, const std::string& name) {
  std::int64_t bytes = static_cast<std::int64_t>(stored.bytes);
  for (const std::int64_t size : shape)
    if (size < 0 || !checked_multiply(bytes, size))
      throw ShapeError("array '" + name + "' cannot have the shape " + to_string(shape));
  return static_cast<std::size_t>(bytes);
}

/// Decodes these bytes to an array.
Array decoded(std::string_view raw, const Stored& stored, const Shape& shape, const std::string& name) {
  const std::size_t wanted = bytes_of(stored, shape, name);
  if (wanted != raw.size())
    throw FileError("array '" + name + "' of shape " + to_string(shape) + " has " + std::to_string(raw.size()) +
                    " bytes, not " + std::to_string(wanted));
  Array array(stored.dtype, shape);
  if (stored.convert != nullptr)
    stored.convert(reinterpret_cast<const std::byte*>(raw.data()), array.data(), array.count());
  else if (wanted > 0)
    copy_pieces(array.data(), raw.data(), wanted);
  return array;
}

void check_unsigned(const Tensor& tensor) {
  if (tensor.element != Element::uint64) return;
  for (std::int64_t i = 0; i < tensor.array.count(); ++i)
    if (tensor.array.as<std::int64_t>()[i] < 0)
      throw DtypeError("array '" + tensor.name + "' has a number of 2^63 or more, which int64 cannot hold");
}
}  // namespace

Dtype dtype_of_element(std::int64_t element, const std::string& what) {
  return stored_element(element, what).dtype;
}

Tensor read_tensor(std::string_view bytes, const std::string& model) {
  return undamaged([&] {
    Tensor tensor;
    Shape shape;
    External external;
    std::string_view raw;
    bool is_raw = false, is_external = false;
    const Message message(bytes.data(), bytes.size());
    read_fields(
        message, read_integers(1, shape),
        field(number_field(2), [&](Message& field) { tensor.element = static_cast<Element>(field.get_int32()); }),
        read_string(8, tensor.name),
        field(text_field(9), [&](Message& field) { raw = text_of(field.get_view()), is_raw = true; }),
        message_field(13, [&](Message entry) { read_external(entry, external); }),
        field(number_field(14), [&](Message& field) { is_external = field.get_int32() == 1; }));
    const Stored& stored = stored_element(static_cast<std::int64_t>(tensor.element), "array '" + tensor.name + "'");
    if (is_external) {
      std::string owned;
      const std::size_t wanted = bytes_of(stored, shape, tensor.name);
      open_external(external, wanted, model, [&](const OpenFile& file) {
        if (stored.convert == nullptr) {
          tensor.array = Array(stored.dtype, shape);
          read_pieces(file, external.offset, tensor.array.data(), wanted);
        } else {
          owned.resize(wanted);
          read_pieces(file, external.offset, owned.data(), wanted);
          tensor.array = decoded(owned, stored, shape, tensor.name);
        }
      });
    } else if (is_raw) {
      tensor.array = decoded(raw, stored, shape, tensor.name);
    } else {
      tensor.array = decoded(typed_bytes(message, stored.bytes), stored, shape, tensor.name);
    }
    check_unsigned(tensor);
    return tensor;
  });
}

}  // namespace xtape::onnx
