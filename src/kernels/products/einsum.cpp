// The kernels of einsum: a product, and a product that is added to an array.
#include "kernels/elements/copy.hpp"
#include "kernels/products/product.hpp"
#include "kernels/table/kernel_form.hpp"

namespace xtape {

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
  if (!form.fixed.empty()) product.fixed = form.fixed[1] ? 1 : form.fixed[0] ? 0 : -1;
  return product;
}

/// The kernel of a product. Every run calls `before` at its beginning.
template <class Before>
Kernel product_kernel(const Product& product, const Before& before) {
  const PlannedProduct planned = make_product(product);
  Kernel kernel;
  kernel.run = [planned, before](const KernelArguments& arguments) {
    before(arguments);
    planned.run(arguments.in[0], arguments.in[1], arguments.out[0], arguments.scratch, arguments.prepared);
  };
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
  return product_kernel(product_of(form, false), [](const KernelArguments&) {});
}

Kernel make_einsum_add(const KernelForm& form) {
  const auto copy = make_copy(form.dtype(2), form.in[2], form.out[0], form.threads);
  return product_kernel(product_of(form, true), [copy](const KernelArguments& arguments) {
    if (arguments.in[2] != arguments.out[0]) copy(arguments.in[2], arguments.out[0]);
  });
}
}  // namespace

KernelList list_einsum() {
  return {{"einsum", make_einsum}, {"einsum_add", make_einsum_add}};
}

}  // namespace xtape
