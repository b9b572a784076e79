/// Runs the kernels of ops without the ops.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernels/table/kernels.hpp"

namespace xtape {

/// A call with dense operands. Kernels are made for it.
class DenseCall {
 public:
  DenseCall(std::vector<ValueType> inputs, std::vector<ValueType> outputs, Attributes attributes, int threads = 1,
            Precision precision = Precision::float32)
      : inputs_(std::move(inputs)),
        outputs_(std::move(outputs)),
        attributes_(std::move(attributes)),
        in_(dense(inputs_)),
        out_(dense(outputs_)),
        fixed_(inputs_.size()),
        threads_(threads),
        precision_(precision) {}

  KernelForm form() const { return {inputs_, outputs_, attributes_, in_, out_, fixed_, threads_, precision_}; }

  /// Makes the kernel of the op with this name and runs it once.
  void run(const std::string& name, const std::vector<const void*>& in, const std::vector<void*>& out) const {
    const Kernel kernel = kernels().make(name, form());
    Array scratch(Dtype::int8, {static_cast<std::int64_t>(kernel.scratch_bytes)});
    kernel.run({in.data(), out.data(), scratch.data()});
  }

 private:
  static std::vector<Layout> dense(const std::vector<ValueType>& types) {
    std::vector<Layout> layouts;
    for (const ValueType& type : types) layouts.push_back(Layout::dense(type.shape));
    return layouts;
  }

  std::vector<ValueType> inputs_, outputs_;
  Attributes attributes_;
  std::vector<Layout> in_, out_;
  std::vector<bool> fixed_;
  int threads_;
  Precision precision_;
};

}  // namespace xtape
