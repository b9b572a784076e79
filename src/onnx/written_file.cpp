#include <filesystem>
#include <limits>
#include <optional>
#include <protozero/pbf_writer.hpp>

#include "base/system/files.hpp"
#include "onnx/writing.hpp"

namespace xtape::onnx {

using protozero::pbf_writer;

namespace {
constexpr std::uint64_t protocol_limit = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t small = 1024;   // arrays with fewer bytes stay in the file
constexpr std::uint64_t page = 4096;  // external arrays begin at multiples of this number, so that they can be mapped

/// Returns the bytes that precede a field of `length` bytes.
std::string head(std::uint32_t field, std::uint64_t length) {
  std::string bytes;
  for (std::uint64_t rest : {std::uint64_t{field} << 3 | 2, length}) {
    for (; rest >= 0x80; rest >>= 7) bytes.push_back(static_cast<char>((rest & 0x7f) | 0x80));
    bytes.push_back(static_cast<char>(rest));
  }
  return bytes;
}

/// The initialisers of the graph, in pieces.
struct TensorBytes {
  std::string bytes;
  const Array* array = nullptr;  // the elements, which follow `bytes` in the file; may be null
  std::uint64_t size() const { return bytes.size() + (array == nullptr ? 0 : array->bytes()); }
};

TensorBytes inside(const WrittenTensor& tensor) {
  const std::string fields = tensor.fields + head(9, tensor.array.bytes());
  return {head(5, fields.size() + tensor.array.bytes()) + fields, &tensor.array};
}

TensorBytes outside(const WrittenTensor& tensor, const std::string& location, std::uint64_t offset) {
  std::string fields = tensor.fields;
  pbf_writer to(fields);
  const auto entry = [&](const char* key, const std::string& value) {
    std::string bytes;
    pbf_writer pair(bytes);
    pair.add_string(1, key);
    pair.add_string(2, value);
    to.add_message(13, bytes);
  };
  entry("location", location);
  entry("offset", std::to_string(offset));
  entry("length", std::to_string(tensor.array.bytes()));
  to.add_int32(14, 1);
  return {head(5, fields.size()) + fields};
}

std::uint64_t size_of(const std::string& graph, const std::vector<TensorBytes>& pieces) {
  std::uint64_t size = graph.size();
  for (const TensorBytes& piece : pieces) size += piece.size();
  return size;
}
}  // namespace

WrittenTensor tensor_of(const Initialiser& initialiser) {
  std::string fields;
  pbf_writer to(fields);
  for (const std::int64_t size : initialiser.array.shape()) to.add_int64(1, size);
  to.add_int32(2, static_cast<std::int32_t>(element_of(initialiser.array.dtype())));
  to.add_string(8, initialiser.name);
  return {fields, Array(initialiser.array)};
}

void write_model(const std::string& path, const std::string& model, const std::string& graph,
                 const std::vector<WrittenTensor>& tensors, std::uint64_t largest_file) {
  if (largest_file > protocol_limit)
    throw Error("largest_file must be at most " + std::to_string(protocol_limit) + ", got " +
                std::to_string(largest_file));
  std::vector<TensorBytes> pieces;
  for (const WrittenTensor& tensor : tensors) pieces.push_back(inside(tensor));
  const std::string fields_of_graph = head(7, size_of(graph, pieces));
  std::optional<ReplacedFile> data;
  if (model.size() + fields_of_graph.size() + size_of(graph, pieces) > largest_file) {
    data.emplace(path + ".data");
    std::uint64_t offset = 0;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const Array& array = tensors[i].array;
      if (array.bytes() < small) continue;
      const std::string gap((page - offset % page) % page, '\0');
      data->write(gap.data(), gap.size());
      offset += gap.size();
      pieces[i] = outside(tensors[i], std::filesystem::path(path + ".data").filename().string(), offset);
      data->write(array.data(), array.bytes());
      offset += array.bytes();
    }
  }
  const std::uint64_t size = size_of(graph, pieces);
  if (model.size() + page + size > protocol_limit)
    throw Error("the model has " + std::to_string(size) + " bytes without its large arrays; ONNX files have at most " +
                std::to_string(protocol_limit));
  ReplacedFile file(path);
  const auto write = [&](const std::string& bytes) { file.write(bytes.data(), bytes.size()); };
  write(model);
  write(head(7, size));
  write(graph);
  for (const TensorBytes& piece : pieces) {
    write(piece.bytes);
    if (piece.array != nullptr) file.write(piece.array->data(), piece.array->bytes());
  }
  if (data) data->commit();
  file.commit();
}

}  // namespace xtape::onnx
