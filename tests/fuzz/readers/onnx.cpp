// Models in ONNX files.
#include "xtape/onnx.hpp"

#include "target.hpp"

namespace xtape::fuzz {

void onnx(Input input) {
  const MemoryFile file(input);
  const auto model = accepted([&] { return open_onnx(file.path()); });
  if (!model) return;
  const auto wide = accepted([&] { return open_onnx(file.path(), {Dtype::float64}); });
  require(wide && wide->weights().size() == model->weights().size(), "a model is read with any dtype of floats");
  for (const auto& [name, weight] : wide->weights())
    require(weight.dtype() == Dtype::float64 && weight.shape() == model->weights().at(name).shape(),
            "weights keep their shapes in another dtype");
}

}  // namespace xtape::fuzz
