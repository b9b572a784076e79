// Reads GGUF files: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
#include "gguf/file.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

#include "base/messages/wording.hpp"
#include "gguf/reading.hpp"

namespace xtape::gguf {

double shortest_double(float value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  double wide = value;
  if (std::isfinite(value)) std::from_chars(text, end, wide);
  return wide;
}

const Json* FileData::find(const std::string& key) const {
  const auto found = metadata.find(key);
  return found == metadata.end() ? nullptr : &*found;
}

const std::size_t* FileData::find_tensor(const std::string& name) const {
  const auto found = index.find(name);
  return found == index.end() ? nullptr : &found->second;
}

void FileData::fail(const std::string& message) const {
  throw FileError(escaped("'" + path + "': " + message));
}

std::string shown(const Json& value) {
  constexpr std::size_t most = 100;
  const std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() <= most ? text : text.substr(0, most) + "…";
}

bool FileData::is_adapter() const {
  const Json* type = find("general.type");
  return type != nullptr && *type == "adapter";
}

const std::string& FileData::text(const std::string& key) const {
  const Json* value = find(key);
  if (value == nullptr || !value->is_string()) fail("the key '" + key + "' must be there and be a text");
  return value->get_ref<const std::string&>();
}

std::int64_t FileData::integer(const std::string& key, std::int64_t least, std::int64_t greatest) const {
  const Json* value = find(key);
  const bool fits = value != nullptr && value->is_number_integer() &&
                    (!value->is_number_unsigned() || value->get<std::uint64_t>() <= std::uint64_t(greatest));
  if (!fits || value->get<std::int64_t>() < least || value->get<std::int64_t>() > greatest)
    fail("the key '" + key + "' must be an integer from " + std::to_string(least) + " to " + std::to_string(greatest) +
         (value == nullptr ? ", and is missing" : ", not " + shown(*value)));
  return value->get<std::int64_t>();
}

namespace {
/// A name NAME-00001-of-00003.gguf: the number of the part and of all parts, or 0 and 0 for other names.
struct SplitName {
  std::string stem;
  std::int64_t number = 0, count = 0;

  explicit SplitName(const std::string& path) {
    constexpr std::size_t length = 20;  // "-00001-of-00003.gguf"
    if (path.size() < length) return;
    const std::string end = path.substr(path.size() - length);
    const auto is_number = [&](std::size_t at) {
      return std::all_of(end.begin() + static_cast<std::ptrdiff_t>(at),
                         end.begin() + static_cast<std::ptrdiff_t>(at) + 5,
                         [](char c) { return c >= '0' && c <= '9'; });
    };
    if (end[0] != '-' || !is_number(1) || end.substr(6, 4) != "-of-" || !is_number(10) || end.substr(15) != ".gguf")
      return;
    stem = path.substr(0, path.size() - length);
    number = std::stoi(end.substr(1, 5));
    count = std::stoi(end.substr(10, 5));
  }
  std::string part(std::int64_t index) const {
    const auto five = [](std::int64_t n) {
      const std::string digits = std::to_string(n);
      return std::string(5 - digits.size(), '0') + digits;
    };
    return stem + "-" + five(index) + "-of-" + five(count) + ".gguf";
  }
};

void add_part(FileData& data, const std::string& path) {
  data.parts.push_back(std::make_unique<const MappedFile>(path));
  PartReader(data, *data.parts.back()).read();
}

/// Reads the other files of a split model, and checks that the files are its parts in order.
void add_other_parts(FileData& data) {
  const Json* count = data.find("split.count");
  const std::int64_t parts = count == nullptr ? 1 : data.integer("split.count", 0, 99999);
  const SplitName name(data.path);
  if (parts <= 1) return;
  if (name.count != parts)
    data.fail("it is split into " + std::to_string(parts) + " files, so its name must end in '-00001-of-" +
              std::to_string(parts) + ".gguf' with five digits");
  if (data.integer("split.no", 0, 99999) != 0 || name.number != 1)
    data.fail("it is part " + std::to_string(name.number) + " of a model: open the first part, '" + name.part(1) + "'");
  for (std::int64_t number = 2; number <= parts; ++number) {
    FileData other;
    other.path = name.part(number);
    add_part(other, other.path);
    if (other.integer("split.no", 0, 99999) != number - 1 || other.integer("split.count", 0, 99999) != parts)
      other.fail("its keys 'split.no' and 'split.count' must be " + std::to_string(number - 1) + " and " +
                 std::to_string(parts) + ", as its name says");
    for (std::size_t i = 0; i < other.tensors.size(); ++i) {
      if (!data.index.emplace(other.tensors[i].name, data.tensors.size()).second)
        other.fail("tensor '" + other.tensors[i].name + "' is in another part too");
      data.tensors.push_back(std::move(other.tensors[i]));
      data.formats.push_back(other.formats[i]);
      data.elements.push_back(other.elements[i]);
      data.places.push_back(other.places[i]);
    }
    data.parts.push_back(std::move(other.parts[0]));
  }
  if (data.find("split.tensors.count") != nullptr &&
      data.integer("split.tensors.count", 0, std::numeric_limits<std::int32_t>::max()) != std::ssize(data.tensors))
    data.fail("the key 'split.tensors.count' says " + shown(*data.find("split.tensors.count")) +
              " tensors, and the parts have " + std::to_string(data.tensors.size()));
}
}  // namespace

std::shared_ptr<const FileData> open_file(const std::string& path) {
  auto data = std::make_shared<FileData>();
  data->path = path;
  add_part(*data, path);
  add_other_parts(*data);
  return data;
}

std::int64_t decode(const FileData& file, std::size_t tensor, std::int64_t first, std::int64_t blocks, float* to) {
  const BlockFormat& format = *file.formats[tensor];
  format.decode(file.elements[tensor].data() + first * format.bytes, to, blocks);
  if (format.elements == 1) return -1;  // plain floats may have any value
  std::int64_t bad = -1;
  for (std::int64_t i = 0; i < blocks; ++i) {
    float sum = 0;  // of zeros, unless a number is infinite or NaN
    for (std::int64_t k = 0; k < format.elements; ++k) sum += to[i * format.elements + k] * 0;
    if (sum != 0) bad = first + i;
  }
  return bad;
}

namespace {
/// Returns the last block that has a scale which is not finite, or -1.
template <class Block>
std::int64_t last_damaged(const std::byte* from, std::int64_t blocks) {
  std::int64_t bad = -1;
  for (std::int64_t i = 0; i < blocks; ++i) {
    Block block;
    std::memcpy(&block, from + i * std::int64_t(sizeof block), sizeof block);
    bool finite = std::isfinite(static_cast<float>(block.scale));
    if constexpr (requires { block.minimum; }) finite = finite && std::isfinite(static_cast<float>(block.minimum));
    if (!finite) bad = i;
  }
  return bad;
}
}  // namespace

std::int64_t find_damaged(Dtype dtype, const std::byte* from, std::int64_t blocks) {
  switch (dtype) {
    case Dtype::q8_0:
      return last_damaged<block::Q8_0>(from, blocks);
    case Dtype::q4_0:
      return last_damaged<block::Q4_0>(from, blocks);
    case Dtype::q4_k:
      return last_damaged<block::Q4_K>(from, blocks);
    case Dtype::q5_k:
      return last_damaged<block::Q5_K>(from, blocks);
    case Dtype::q6_k:
      return last_damaged<block::Q6_K>(from, blocks);
    default:
      return -1;
  }
}

void fail_block(const FileData& file, std::size_t tensor, std::int64_t block) {
  throw FileError(escaped("'" + file.places[tensor]->path() + "': tensor '" + file.tensors[tensor].name +
                          "' is damaged: block " + std::to_string(block) + " of " + file.tensors[tensor].format +
                          " has a scale that is not a finite number"));
}

}  // namespace xtape::gguf

namespace xtape {

GgufFile::GgufFile(const std::string& path) : data_(gguf::open_file(path)) {}

const std::string& GgufFile::path() const {
  return data_->path;
}
std::uint32_t GgufFile::version() const {
  return data_->version;
}
const std::vector<std::string>& GgufFile::keys() const {
  return data_->keys;
}
bool GgufFile::has(const std::string& key) const {
  return data_->find(key) != nullptr;
}
const std::vector<GgufFile::Tensor>& GgufFile::tensors() const {
  return data_->tensors;
}

std::string GgufFile::metadata(const std::string& key) const {
  const Json* value = data_->find(key);
  if (value == nullptr) throw Error("'" + path() + "' has no key '" + key + "'" + did_you_mean(key, data_->keys));
  return value->dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::span<const std::byte> GgufFile::bytes(std::size_t tensor) const {
  if (tensor >= data_->tensors.size())
    throw Error("'" + path() + "' has no tensor " + std::to_string(tensor) + ": it has " +
                std::to_string(data_->tensors.size()));
  return data_->elements[tensor];
}

Array GgufFile::read(std::size_t tensor) const {
  const auto blocks = static_cast<std::int64_t>(bytes(tensor).size()) / data_->formats[tensor]->bytes;
  Array values(Dtype::float32, data_->tensors[tensor].shape);
  const std::int64_t bad = gguf::decode(*data_, tensor, 0, blocks, values.as<float>());
  if (bad >= 0) gguf::fail_block(*data_, tensor, bad);
  return values;
}

}  // namespace xtape
