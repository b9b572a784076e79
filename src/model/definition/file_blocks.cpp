#include <atomic>
#include <nlohmann/json.hpp>

#include "base/bytes/encodings.hpp"
#include "model/definition/definition_blocks.hpp"
#include "model/language/location.hpp"

namespace xtape {

namespace {
std::atomic<BlockReader> onnx_reader{nullptr};
}

void set_onnx_block_reader(BlockReader reader) {
  onnx_reader = reader;
}

namespace model {

namespace {
constexpr std::int64_t longest = std::int64_t{1} << 40;  // limit for an axis of an embedded weight

/// Reads the file of a block from an entry that embedded_file wrote.
void take_embedded(const JsonNode& embedded, BlockFile& file) {
  embedded.only({"graph", "weights"});
  const std::optional<std::string> bytes = from_base64(embedded.at("graph").text());
  if (!bytes || bytes->empty()) embedded.at("graph").fail("this is no base64");
  file.bytes = *bytes;
  for (const auto& [name, sizes] : embedded.at("weights").entries()) {
    Shape shape;
    std::int64_t count = 1;
    if (sizes.elements().size() > Shape::max_rank)
      sizes.fail("an array has at most " + std::to_string(Shape::max_rank) + " axes");
    for (const JsonNode& size : sizes.elements()) {
      shape.push_back(size.integer(0, longest));
      if (!checked_multiply(count, shape.back()) || count > longest) sizes.fail("the weight is too large");
    }
    file.weights.add(name, Array(Dtype::float32, shape));
  }
}

Line literal(std::int64_t number, const Location& location) {
  return parse_line(std::to_string(number), location, false);
}
}  // namespace

std::unique_ptr<Block> read_file_block(const std::string& name, const JsonNode& entry, const BlockSource& source,
                                       const Definition& home) {
  entry.only({"about", "onnx", "outputs"});
  const JsonNode named = entry.at("onnx");
  const BlockReader reader = onnx_reader;
  if (reader == nullptr)
    named.fail(
        "blocks from ONNX files need the library xtape-onnx: a program includes xtape/onnx.hpp and calls "
        "read_onnx_blocks() first");
  auto block = std::make_unique<Block>();
  block->name = name;
  block->node = entry;
  block->location = location_of(entry);
  block->home = &home;
  block->file = named.text();
  BlockFile file;
  file.path = source.path;
  if (source.is_embedded) take_embedded(source.embedded, file);
  if (entry.has("outputs"))
    for (const JsonNode& output : entry.at("outputs").elements()) file.outputs.push_back(output.text());
  try {
    block->from_file = reader(file);
  } catch (const Error& error) {
    named.fail(error.what());
  }
  for (const std::string& input : block->from_file->inputs()) {
    Input& made = block->inputs.emplace_back();
    made.name = input;
    made.location = block->location;
  }
  for (const Store::Entry& weight : block->from_file->weights()) {
    WeightSpec spec;
    spec.name = weight.name;
    spec.location = block->location;
    for (const std::int64_t size : weight.value.shape()) spec.shape.push_back(literal(size, block->location));
    spec.value = Array(weight.value);
    block->weights.push_back(std::move(spec));
  }
  block->weight_index = index_of(block->weights);
  return block;
}

Json embedded_file(const Block& block) {
  Json file;
  file["graph"] = to_base64(block.from_file->without_weights());
  file["weights"] = Json::object();
  for (const Store::Entry& weight : block.from_file->weights()) {
    Json sizes = Json::array();
    for (const std::int64_t size : weight.value.shape()) sizes.push_back(size);
    file["weights"][weight.name] = std::move(sizes);
  }
  return file;
}

}  // namespace model

}  // namespace xtape
