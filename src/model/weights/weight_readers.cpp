// Readers of files of weights in other formats, which the libraries of these formats register.
#include <map>
#include <mutex>

#include "base/system/durable.hpp"
#include "base/system/system.hpp"
#include "model/weights/stored_weights.hpp"
#include "xtape/file_block.hpp"

namespace xtape {

namespace {
std::mutex mutex;
std::map<std::string, WeightReader>& readers() {
  static std::map<std::string, WeightReader> by_ending;
  return by_ending;
}
}  // namespace

void set_weight_reader(const std::string& ending, WeightReader reader) {
  const std::lock_guard<std::mutex> lock(mutex);
  readers()[ending] = reader;
}

std::unique_ptr<ArrayFile> model::open_weights(const std::string& path) {
  WeightReader reader = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    for (const auto& [ending, each] : readers())
      if (path.ends_with(ending)) reader = each;
  }
  if (reader == nullptr) {
    if (path.ends_with(".onnx"))
      throw FileError(path +
                      ": weights of ONNX files need the library xtape-onnx: a program includes xtape/onnx.hpp and "
                      "calls read_onnx_blocks() first");
    return std::make_unique<ArrayFile>(path);
  }
  const std::string converted = temporary_path("weights", ".safetensors");
  try {
    save_arrays(converted, reader(path));
    auto file = std::make_unique<ArrayFile>(converted);
    remove_if_possible(converted);  // it stays readable
    return file;
  } catch (...) {
    remove_if_possible(converted);
    throw;
  }
}

}  // namespace xtape
