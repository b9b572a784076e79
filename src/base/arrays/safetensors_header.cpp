#include "base/arrays/safetensors_header.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>
#include <unordered_map>
#include <unordered_set>

#include "base/json/json_text.hpp"

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
      {"Q8_0", {1, Dtype::q8_0, nullptr}},
      {"Q4_0", {1, Dtype::q4_0, nullptr}},
      {"Q4_K", {1, Dtype::q4_k, nullptr}},
      {"Q5_K", {1, Dtype::q5_k, nullptr}},
      {"Q6_K", {1, Dtype::q6_k, nullptr}},
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
    return type.second.dtype == dtype && (is_block(dtype) || type.second.bytes == size_of(dtype));
  });
  return found->first.c_str();
}

namespace {
constexpr std::uint64_t largest_header = std::uint64_t{100} << 20;  // the limit in the format's reference reader
constexpr const char* metadata_key = "__metadata__";
/// The prefix of the metadata keys of checksums. The name of the array follows the prefix.
constexpr const char* checksum_key = "xxh3:";

/// Returns the checksum as 16 lower-case hexadecimal digits.
std::string written(std::uint64_t checksum) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(checksum));
  return text;
}

/// Reads and checks the header of one file.
class Header {
 public:
  Header(const OpenFile& file, const std::string& path) : file_(file), path_(path) {}

  SafetensorsHeader read() {
    const std::uint64_t size = file_.size();
    if (size < 8) fail("it has " + std::to_string(size) + " bytes, but a header needs at least 8");
    unsigned char bytes[8];
    file_.read(0, bytes, sizeof bytes);
    std::uint64_t length = 0;
    for (int i = 7; i >= 0; --i) length = length << 8 | bytes[i];
    if (length > size - 8 || length > largest_header)
      fail("the header length, " + std::to_string(length) + " bytes, exceeds the " + std::to_string(size - 8) +
           " bytes that follow, or the limit of 100 MiB");
    header_.elements = 8 + length;
    std::string text(length, '\0');
    file_.read(8, text.data(), text.size());
    const JsonText json(std::move(text), "'" + path_ + "' is not a whole safetensors file: its header",
                        JsonErrors::file);
    if (!json.root().is_object()) fail("its header is not a JSON object");
    for (const auto& [name, entry] : json.root().items())
      if (name != metadata_key) header_.arrays.push_back(described(name, entry));
    check_overlap();
    if (json.root().contains(metadata_key)) read_metadata(json.root()[metadata_key]);
    return std::move(header_);
  }

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
    Described result;
    result.name = name;
    if (!dtype.is_string()) fail(where + "has a dtype that is not a string");
    result.stored = stored_type(dtype.get<std::string>());
    if (result.stored == nullptr)
      throw FileError("'" + path_ + "': array '" + name + "' has the dtype " + dtype.dump() +
                      ", which xtape does not support: convert it to one of " + stored_names());
    if (!shape.is_array() || shape.size() > Shape::max_rank || !std::ranges::all_of(shape, is_count))
      fail(where + "has a shape that is not a list of at most 10 sizes");
    if (!offsets.is_array() || offsets.size() != 2 || !is_count(offsets[0]) || !is_count(offsets[1]))
      fail(where + "has data_offsets that are not two integers");
    result.first = offsets[0].get<std::uint64_t>();
    result.last = offsets[1].get<std::uint64_t>();
    const std::uint64_t available = file_.size() - header_.elements;
    if (result.first > result.last || result.last > available)
      fail(where + "has data_offsets " + std::to_string(result.first) + " to " + std::to_string(result.last) +
           ", which are not a range within the " + std::to_string(available) + " bytes after the header");
    for (const Json& size : shape) result.shape.push_back(size.get<std::int64_t>());
    try {
      checked_bytes(result.stored->dtype, result.shape);
    } catch (const ShapeError&) {
      fail(where + "has a shape that is too large" +
           (is_block(result.stored->dtype) ? ", or that is not one of whole blocks" : ""));
    }
    const std::int64_t count = count_of(result.shape);
    const auto bytes = static_cast<std::uint64_t>(is_block(result.stored->dtype)
                                                      ? bytes_of(result.stored->dtype, count)
                                                      : count * static_cast<std::int64_t>(result.stored->bytes));
    if (bytes != result.last - result.first)
      fail(where + "of shape " + to_string(result.shape) + " takes " + std::to_string(bytes) +
           " bytes, but its data_offsets span " + std::to_string(result.last - result.first));
    return result;
  }

  void check_overlap() const {
    std::vector<const Described*> sorted;
    for (const Described& each : header_.arrays)
      if (each.last > each.first) sorted.push_back(&each);
    std::ranges::sort(sorted, [](auto* a, auto* b) { return a->first < b->first; });
    for (std::size_t i = 1; i < sorted.size(); ++i)
      if (sorted[i]->first < sorted[i - 1]->last)
        fail("arrays '" + sorted[i - 1]->name + "' and '" + sorted[i]->name + "' overlap");
  }

  /// Reads the metadata. Throws FileError if some arrays have a checksum and others have none, because a damaged key
  /// could otherwise disable the check of an array.
  void read_metadata(const Json& metadata) {
    const std::string prefix = checksum_key;
    // by array; needed because find() of ordered JSON is linear
    std::unordered_map<std::string, const Json*> checksums;
    if (!metadata.is_object()) return;
    std::unordered_map<std::string, std::string> orders;
    for (const auto& [key, value] : metadata.items()) {
      if (key.starts_with(prefix))
        checksums.emplace(key.substr(prefix.size()), &value);
      else if (key.starts_with(order_key) && value.is_string())
        orders.emplace(key.substr(std::strlen(order_key)), value.get<std::string>());
      else if (value.is_string())
        header_.metadata.set(key, value.get<std::string>());
    }
    for (Described& each : header_.arrays)
      if (const auto found = orders.find(each.name); found != orders.end()) each.order = order_in(found->second, each);
    if (checksums.empty()) return;
    for (Described& each : header_.arrays) {
      const auto found = checksums.find(each.name);
      if (found == checksums.end()) fail("array '" + each.name + "' has no checksum, but other arrays have one");
      each.checksum = checksum_in(*found->second);
      if (!each.checksum) fail("the checksum of array '" + each.name + "' is not 16 lower-case hexadecimal digits");
    }
  }

  std::vector<std::int64_t> order_in(const std::string& text, const Described& array) const {
    std::istringstream words(text);
    const std::vector<std::int64_t> order{std::istream_iterator<std::int64_t>(words), {}};
    std::vector<std::int64_t> axes(array.shape.size());
    std::iota(axes.begin(), axes.end(), std::int64_t{0});
    if (!words.eof() || !std::ranges::is_permutation(order, axes))
      fail("the order of array '" + array.name + "' is \"" + text + "\", which does not have each of its " +
           std::to_string(axes.size()) + " axes once");
    return order;
  }

  static std::optional<std::uint64_t> checksum_in(const Json& value) {
    if (!value.is_string()) return {};
    const std::string& text = value.get_ref<const std::string&>();
    std::uint64_t checksum = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), checksum, 16);
    if (failed != std::errc() || written(checksum) != text) return {};
    return checksum;
  }

  const OpenFile& file_;
  const std::string& path_;
  SafetensorsHeader header_;
};
}  // namespace

SafetensorsHeader read_header(const OpenFile& file, const std::string& path) {
  return Header(file, path).read();
}

std::string header_of(const std::vector<ArrayFile::Entry>& entries, const std::vector<std::uint64_t>& checksums,
                      const std::vector<std::pair<std::string, std::string>>& metadata, const std::string& path) {
  const auto refuse = [&](const std::string& why) { throw FileError("cannot write '" + path + "': " + why); };
  std::unordered_set<std::string> names, keys;  // names of arrays; keys of the metadata
  for (const ArrayFile::Entry& entry : entries) {
    if (entry.name == metadata_key)
      refuse(std::string("the array name '") + metadata_key + "' is reserved for the metadata");
    if (!names.insert(entry.name).second) refuse("two arrays have the name '" + entry.name + "'");
    keys.insert(checksum_key + entry.name);
  }
  for (const auto& each : metadata)
    if (!keys.insert(each.first).second) refuse("the metadata has the key '" + each.first + "' twice");
  // Builds the text member by member, because insertion into an ordered JSON object searches all names.
  std::string text = "{";
  const auto add = [&](const std::string& name, const std::string& value) {
    text += (text.back() == '{' ? "" : ",") + Json(name).dump() + ":" + value;
  };
  try {
    add(metadata_key, "{");
    for (const auto& [name, value] : metadata) add(name, Json(value).dump());
    for (std::size_t i = 0; i < entries.size(); ++i)
      add(checksum_key + entries[i].name, Json(written(checksums[i])).dump());
    text += "}";
    std::uint64_t offset = 0;
    for (const ArrayFile::Entry& entry : entries) {
      const std::uint64_t end = offset + static_cast<std::uint64_t>(checked_bytes(entry.dtype, entry.shape));
      const std::vector<std::int64_t> shape(entry.shape.begin(), entry.shape.end());
      add(entry.name, R"({"dtype":")" + std::string(stored_name(entry.dtype)) + R"(","shape":)" + Json(shape).dump() +
                          R"(,"data_offsets":)" + Json({offset, end}).dump() + "}");
      offset = end;
    }
  } catch (const Json::exception&) {
    refuse("a name or a metadata value is not UTF-8");
  }
  text += "}";
  text.append((8 - text.size() % 8) % 8, ' ');  // aligns the elements to 8 bytes in the file
  return text;
}

}  // namespace xtape
