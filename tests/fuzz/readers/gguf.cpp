// GGUF files: metadata, tensors, and the folder that a file stands for.
#include "xtape/gguf.hpp"

#include <cmath>

#include "base/system/folder_file.hpp"
#include "source_root.hpp"
#include "target.hpp"

namespace xtape::fuzz {

void gguf(Input input) {
  static const bool ready = [] {
    setenv("XTAPE_MODELS", (source_root() + "/models").c_str(), 1);
    read_gguf_files();
    return true;
  }();
  const std::string path = folder() + "/input.gguf";
  write(path, input);
  const auto file = accepted([&] { return GgufFile(path); });
  require(ready, "the reader is set");
  if (!file) return;
  for (const std::string& key : file->keys()) require(!file->metadata(key).empty(), "every key has a value");
  for (std::size_t i = 0; i < file->tensors().size(); ++i) {
    const auto values = accepted([&] { return file->read(i); });
    if (!values || file->tensors()[i].format.find('_') == std::string::npos) continue;
    for (std::int64_t k = 0; k < count_of(values->shape()); ++k)
      require(std::isfinite(values->as<float>()[k]), "blocks that are read have finite numbers");
  }
  const auto opened = accepted([&] { return folder_file(path); });
  if (!opened) return;
  for (std::size_t i = 0; i < (*opened)->arrays().size(); ++i)
    accepted([&] { return ArrayFile(path + "/" + (*opened)->arrays_name()).read(i); });
}

}  // namespace xtape::fuzz
