// The kernels of einsum: a product, and a product that is added to an array.
#include "kernels/elements/copy.hpp"
#include "kernels/products/product.hpp"
#include "kernels/table/kernel_form.hpp"
#include "kernels/table/kernels.hpp"
#include "kernels/table/row_kernel.hpp"

namespace xtape {

#ifdef XTAPE_SHARED_KERNELS
extern const Kernels XTAPE_SHARED_KERNELS;
#endif

namespace {
Product product_of(const KernelForm& form, bool accumulate) {
  const std::string& text = form.get<std::string>("equation");  // "ab,bc->ac"
  const std::size_t comma = text.find(','), arrow = text.find("->");
  Product product;
  product.dtype = form.outputs[0].dtype;
  for (std::size_t i = 0; i < 2; ++i)
    if (form.dtype(i) != product.dtype) product.narrow[i] = form.dtype(i);
  product.a = form.in[0];
  product.b = form.in[1];
  product.c = form.out[0];
  product.a_axes = text.substr(0, comma);
  product.b_axes = text.substr(comma + 1, arrow - comma - 1);
  product.c_axes = text.substr(arrow + 2);
  product.accumulate = accumulate;
  product.threads = form.threads;
  product.precision = form.precision;
  product.bits = form.bits;
  // Blocks are never packed in advance: they are there to save memory.
  const auto is_fixed = [&](std::size_t i) { return form.fixed[i] && !is_block(form.dtype(i)); };
  if (!form.fixed.empty()) product.fixed = is_fixed(1) ? 1 : is_fixed(0) ? 0 : -1;
  return product;
}

/// Copies what a product is added to. Without functions, for a product that is not added, it does nothing.
struct Addend {
  std::function<void(const void*, void*)> copy = {};
  RowCopy copy_rows = {};

  void whole(const KernelArguments& arguments) const {
    if (copy && arguments.in[2] != arguments.out[0]) copy(arguments.in[2], arguments.out[0]);
  }
  void rows(const KernelArguments& arguments, std::int64_t begin, std::int64_t end) const {
    if (copy && arguments.in[2] != arguments.out[0]) copy_rows(arguments.in[2], arguments.out[0], begin, end);
  }
};

/// Returns Kernel::run, which can compute rows if the product can.
std::function<void(const KernelArguments&)> run_of(const KernelForm& form, const PlannedProduct& planned,
                                                   const Addend& addend) {
  RowKernel kernel{[planned, addend](const KernelArguments& arguments) {
    addend.whole(arguments);
    planned.run(arguments.in[0], arguments.in[1], arguments.out[0], arguments.scratch, arguments.prepared);
  }};
  if (!planned.rows) return kernel.all;
  kernel.rows = form.out[0].shape[0];
  for (std::size_t i = 0; i < form.in.size(); ++i)
    if (is_block(form.dtype(i)) || !kernel.add(form.in[i], size_of(form.dtype(i)), i != 1)) return kernel.all;
  if (!kernel.add(form.out[0], size_of(form.outputs[0].dtype))) return kernel.all;
  kernel.compute = [rows = planned.rows, addend](const KernelArguments& arguments, std::int64_t begin, std::int64_t end,
                                                 std::int64_t) {
    addend.rows(arguments, begin, end);
    rows(arguments.in[0], arguments.out[0], arguments.prepared, begin, end);
  };
  constexpr double nanoseconds_per_term = 0.01;
  kernel.nanoseconds = nanoseconds_per_term * planned.terms / static_cast<double>(kernel.rows);
  return kernel;
}

Kernel product_kernel([[maybe_unused]] const char* op, const KernelForm& form, const Addend& addend) {
#ifdef XTAPE_SHARED_KERNELS
  // Integers need VNNI in this set. Processors without it have the narrower set's products.
  const bool blocks = is_block(form.dtype(0)) || is_block(form.dtype(1));
  if (rounds_to_bytes(form.precision) && blocks && instruction_set() < InstructionSet::avx512_bf16)
    return XTAPE_SHARED_KERNELS.make(op, form);
#endif
  const Product product = product_of(form, form.inputs.size() > 2);
  const PlannedProduct planned = make_product(product);
  Kernel kernel;
  kernel.run = run_of(form, planned, addend);
  kernel.scratch_bytes = planned.scratch_bytes;
  kernel.prepared_bytes = planned.prepared_bytes;
  kernel.prepared_form = planned.prepared_form;
  if (planned.prepare)
    kernel.prepare = [prepare = planned.prepare, operand = product.fixed](const KernelArguments& arguments) {
      prepare(arguments.in[operand], arguments.prepared);
    };
  return kernel;
}

Kernel make_einsum(const KernelForm& form) {
  return product_kernel("einsum", form, {});
}

Kernel make_einsum_add(const KernelForm& form) {
  const Layout &in = form.in[2], &out = form.out[0];
  Addend addend{make_copy(form.dtype(2), in, out, form.threads)};
  if (!out.shape.empty()) {
    const auto bytes = static_cast<std::int64_t>(size_of(form.dtype(2)));
    addend.copy_rows = {make_copy(form.dtype(2), row_of(in), row_of(out), 1), in.strides[0] * bytes,
                        out.strides[0] * bytes};
  }
  return product_kernel("einsum_add", form, addend);
}
}  // namespace

KernelList list_einsum() {
  return {{"einsum", make_einsum}, {"einsum_add", make_einsum_add}};
}

}  // namespace xtape
