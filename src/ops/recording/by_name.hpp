/// Finds the kernels and tile functions that the kernel layer has under the name of an op.
#pragma once

#include "kernels/table/kernels.hpp"
#include "xtape/op/op.hpp"

namespace xtape {

inline KernelForm form_of(const KernelCall& call, const Attributes& attributes) {
  return {call.inputs, call.outputs, attributes,     call.in,   call.out,
          call.fixed,  call.threads, call.precision, call.seed, call.site.key};
}

/// Returns the kernel of the call's op, made with these attributes: the attributes of the call, or attributes that the
/// op has derived from them.
inline Kernel kernel_of(const KernelCall& call, const Attributes& attributes) {
  return kernels().make(call.op.name, form_of(call, attributes));
}
// For Lowering::kernel and Lowering::tile:
inline Kernel kernel_by_name(const KernelCall& call) {
  return kernel_of(call, call.attributes);
}
inline TileFunction tile_by_name(const KernelCall& call) {
  return kernels().make_tile(call.op.name, form_of(call, call.attributes));
}

}  // namespace xtape
