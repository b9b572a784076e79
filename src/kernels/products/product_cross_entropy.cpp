#include "kernels/products/product_cross_entropy.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "base/arrays/lengths.hpp"
#include "base/threads/threads.hpp"
#include "kernels/elements/scalar.hpp"
#include "kernels/math/lanes.hpp"
#include "kernels/products/product.hpp"
#include "kernels/reductions/cross_entropy.hpp"
#include "kernels/reductions/reduce.hpp"
#include "kernels/table/kernel_form.hpp"
#include "kernels/table/scratch.hpp"

namespace xtape {

namespace {
/// logits[rows, classes] = x[rows, terms] * weight + bias[classes]. All arrays are dense.
struct LogitsProduct {
  CrossEntropy loss;  ///< The loss of these logits.
  std::int64_t terms = 0;
  bool classes_first = true;  ///< Whether the weight is [classes, terms]. If false, it is [terms, classes].
  bool biased = false;
  Precision precision = Precision::float32;  ///< The precision of the products.
  Bits bits = Bits::usual;
  int threads = 1;
};

std::int64_t block_count(const CrossEntropy& loss) {
  const std::int64_t each = rows_at_once(loss.classes);
  return std::max<std::int64_t>(1, ceiling(loss.rows, each));  // without rows, a single block writes the zeros
}

/// An array with the axis labels r (rows), t (terms) and c (classes).
struct LogitsOperand {
  Layout layout;
  std::string axes;
};

template <class T>
PlannedProduct planned(const LogitsProduct& given, const LogitsOperand& a, const LogitsOperand& b,
                       const LogitsOperand& c, bool accumulate) {
  Product product;
  product.dtype = dtype_of<T>();
  product.a = a.layout;
  product.b = b.layout;
  product.c = c.layout;
  product.a_axes = a.axes;
  product.b_axes = b.axes;
  product.c_axes = c.axes;
  product.accumulate = accumulate;
  product.precision = given.precision;
  product.bits = given.bits;
  product.threads = given.threads;
  return make_product(product);
}

/// row[classes] += bias[classes].
template <class T>
void add_to_row(const T* bias, std::int64_t classes, T* row) {
  for_lanes<T>(classes, [&](std::int64_t i, const auto& lanes) {
    lanes.store(row + i, lanes.load(row + i) + lanes.load(bias + i));
  });
}

/// Adds the bias, if there is one, to rows of logits, computes their losses, and overwrites the logits with their
/// gradients. Each row is processed completely, so that it stays in the second-level cache.
template <class T, class Target>
void take_losses(T* logits, const T* bias, const Target* targets, const CrossEntropy& block, double* losses,
                 T* logsumexp, int threads) {
  CrossEntropy one = block;
  one.rows = 1;
  parallel_for(threads, block.rows, rows_a_piece(block.classes), [&](std::int64_t begin, std::int64_t finish) {
    for (std::int64_t r = begin; r < finish; ++r) {
      T* row = logits + r * block.classes;
      if (bias != nullptr) add_to_row(bias, block.classes, row);
      row_losses(row, targets + r, one, losses + r, logsumexp + r, 1);
      cross_entropy_grad(row, targets + r, logsumexp + r, T{1}, one, row, 1);
    }
  });
}

template <class T>
class ProductCrossEntropy {
 public:
  [[gnu::cold]] explicit ProductCrossEntropy(const LogitsProduct& product);
  std::size_t scratch_bytes() const { return places_.end; }

  /// Throws the same errors as check_targets.
  template <class Target>
  void run(const KernelArguments& arguments) const;

 private:
  struct Block {
    std::int64_t first = 0;
    CrossEntropy loss;  ///< The loss of the rows in the block.
    PlannedProduct logits, dx, dweight;
    Kernel dbias;
  };
  /// Byte offsets in scratch, after the logits of a block: the loss and logsumexp of each row, each block's
  /// contribution to dbias, and the scratch of the products.
  struct Places {
    std::size_t losses, logsumexp, dbias, working, end;
  };

  LogitsProduct given_;
  std::vector<Block> blocks_;
  Kernel dbias_;  ///< Sums the contributions of the blocks.
  Places places_{};
};

template <class T>
ProductCrossEntropy<T>::ProductCrossEntropy(const LogitsProduct& product)
    : given_(product),
      dbias_(make_row_sum(dtype_of<T>(), block_count(product.loss), product.loss.classes, product.threads)) {
  std::size_t working = dbias_.scratch_bytes;
  const std::int64_t classes = product.loss.classes;
  const LogitsOperand weight = product.classes_first ? LogitsOperand{Layout::dense({classes, product.terms}), "ct"}
                                                     : LogitsOperand{Layout::dense({product.terms, classes}), "tc"};
  const std::int64_t each = rows_at_once(classes);
  for (std::int64_t i = 0; i < block_count(product.loss); ++i) {
    CrossEntropy loss = product.loss;
    loss.rows = std::min(each, product.loss.rows - i * each);
    const LogitsOperand x{Layout::dense({loss.rows, product.terms}), "rt"};
    const LogitsOperand logits{Layout::dense({loss.rows, classes}), "rc"};
    blocks_.push_back({i * each, loss, planned<T>(product, x, weight, logits, false),
                       planned<T>(product, logits, weight, x, false), planned<T>(product, logits, x, weight, i > 0),
                       make_row_sum(dtype_of<T>(), loss.rows, classes, product.threads)});
    const Block& block = blocks_.back();
    working = std::max({working, block.logits.scratch_bytes, block.dx.scratch_bytes, block.dweight.scratch_bytes,
                        block.dbias.scratch_bytes});
  }
  const auto bytes = [](std::int64_t elements, std::size_t each) {
    return whole_lines(static_cast<std::size_t>(elements) * each);
  };
  places_.losses = bytes(blocks_.front().loss.rows * classes, sizeof(T));
  places_.logsumexp = places_.losses + bytes(product.loss.rows, sizeof(double));
  places_.dbias = places_.logsumexp + bytes(product.loss.rows, sizeof(T));
  places_.working = places_.dbias + (product.biased ? bytes(block_count(product.loss) * classes, sizeof(T)) : 0);
  places_.end = places_.working + working;
}

template <class T>
template <class Target>
void ProductCrossEntropy<T>::run(const KernelArguments& arguments) const {
  const T *x = in<T>(arguments, 0), *weight = in<T>(arguments, 1), *bias = in<T>(arguments, 3, given_.biased);
  const auto* targets = in<Target>(arguments, 2);
  T *dx = out<T>(arguments, 2), *dweight = out<T>(arguments, 3);
  check_targets(targets, given_.loss);
  auto* start = static_cast<std::byte*>(arguments.scratch);
  auto* logits = static_cast<T*>(arguments.scratch);
  auto* losses = reinterpret_cast<double*>(start + places_.losses);
  auto* logsumexp = reinterpret_cast<T*>(start + places_.logsumexp);
  auto* shares = reinterpret_cast<T*>(start + places_.dbias);
  void* working = start + places_.working;
  const auto sum_rows = [&](const Kernel& sum, const void* from, void* to) {
    sum.run({.in = &from, .out = &to, .scratch = working});
  };
  const int threads = given_.threads;
  for (const Block& block : blocks_) {
    const T* rows_of_x = x + block.first * given_.terms;
    const Target* rows_of_targets = targets + block.first;
    block.logits.run(rows_of_x, weight, logits, working);
    take_losses(logits, bias, rows_of_targets, block.loss, losses + block.first, logsumexp + block.first, threads);
    block.dx.run(logits, weight, dx + block.first * given_.terms, working);
    block.dweight.run(logits, rows_of_x, dweight, working);
    if (given_.biased) sum_rows(block.dbias, logits, shares + (&block - blocks_.data()) * given_.loss.classes);
  }
  if (given_.biased) sum_rows(dbias_, shares, arguments.out[4]);
  sum_losses(losses, targets, given_.loss, out<T>(arguments, 0), out<std::int64_t>(arguments, 1));
}

/// Inputs are x, weight, targets and an optional bias. Outputs are the sum of the rows' losses, the number of rows that
/// are not ignored, and the gradients of the sum. The op adds the attribute `classes_first`.
Kernel make_product_cross_entropy(const KernelForm& form) {
  LogitsProduct product;
  product.classes_first = form.get<bool>("classes_first");
  product.loss = loss_of(form.attributes, {count_of(form.shape(2)), form.shape(1)[product.classes_first ? 0 : 1]});
  product.terms = form.shape(0).back();
  product.biased = form.inputs.size() > 3;
  product.precision = form.precision;
  product.bits = form.bits;
  product.threads = form.threads;
  return with_floating(form.dtype(0), [&](auto scalar) {
    return with_index(form.dtype(2), [&](auto target) {
      const auto planned = std::make_shared<const ProductCrossEntropy<decltype(scalar)>>(product);
      return Kernel{[planned](const KernelArguments& arguments) { planned->template run<decltype(target)>(arguments); },
                    planned->scratch_bytes()};
    });
  });
}
}  // namespace

KernelList list_product_cross_entropy() {
  return {{"product_cross_entropy", make_product_cross_entropy}};
}

}  // namespace xtape
