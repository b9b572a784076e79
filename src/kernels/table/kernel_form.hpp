/// The argument of the functions that make kernels.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xtape/attributes.hpp"
#include "xtape/op/kernel.hpp"
#include "xtape/precision.hpp"

namespace xtape {

/// A call of an op without the op: types, layouts and attributes. The op has checked them. The references are valid
/// only while the kernel is made, so the kernel must copy the data that it needs.
struct KernelForm {
  const std::vector<ValueType>& inputs;  ///< The list is shorter if trailing optional inputs are omitted.
  const std::vector<ValueType>& outputs;
  const Attributes& attributes;
  const std::vector<Layout>& in;  ///< The inputs' layouts. Only kernels with Layouts::any_in read them.
  const std::vector<Layout>& out;
  const std::vector<bool>& fixed;  ///< See KernelCall::fixed.
  int threads = 1;
  Precision precision = Precision::float32;
  Bits bits = Bits::usual;
  std::uint64_t seed = 0;  ///< The seed of the player.
  std::uint64_t site = 0;  ///< The key of the call's site.

  const Shape& shape(std::size_t input) const { return inputs[input].shape; }
  Dtype dtype(std::size_t input) const { return inputs[input].dtype; }
  template <class T>
  const T& get(std::string_view name) const {
    return attributes.get<T>(name);
  }
};

/// Returns the memory of an input or output as a pointer to its elements, or null if the input or output is absent.
template <class T>
const T* in(const KernelArguments& arguments, std::size_t input, bool there = true) {
  return there ? static_cast<const T*>(arguments.in[input]) : nullptr;
}
template <class T>
T* out(const KernelArguments& arguments, std::size_t output, bool there = true) {
  return there ? static_cast<T*>(arguments.out[output]) : nullptr;
}

/// The kernels of a file: for each op, its name and the function that makes its kernel. (src/kernels/meson.build lists
/// the files. list_NAME() returns the kernels of NAME.cpp.)
using KernelList = std::vector<std::pair<const char*, Kernel (*)(const KernelForm&)>>;

}  // namespace xtape
