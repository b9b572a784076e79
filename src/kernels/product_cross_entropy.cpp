#include "product_cross_entropy.hpp"

#include <algorithm>
#include <string>

#include "lanes.hpp"
#include "scratch.hpp"
#include "threads.hpp"

namespace xtape {

namespace {
// With fewer rows, the products of a block would take longer to read the weight than to multiply by it.
constexpr std::int64_t least_rows = 512;
constexpr std::int64_t logits_at_once = 4 << 20;  // the number of logits of a block, if rows are short
constexpr std::int64_t row_step = 256;            // the rows that the sum for the weight's gradient takes at a time

std::int64_t block_count(const CrossEntropy& loss) {
  const std::int64_t each = rows_at_once(loss.classes);
  return std::max<std::int64_t>(1, (loss.rows + each - 1) / each);  // without rows, one block writes the zeros
}

/// An array with the axis labels r (rows), t (terms) and c (classes).
struct Operand {
  Layout layout;
  std::string axes;
};

template <class T>
PlannedProduct planned(const Operand& a, const Operand& b, const Operand& c, int threads, bool accumulate) {
  Product product;
  product.dtype = dtype_of<T>();
  product.a = a.layout;
  product.b = b.layout;
  product.c = c.layout;
  product.a_axes = a.axes;
  product.b_axes = b.axes;
  product.c_axes = c.axes;
  product.accumulate = accumulate;
  product.threads = threads;
  return make_product(product);
}

/// logits[rows, classes] += bias[classes].
template <class T>
void add_to_rows(const T* bias, const CrossEntropy& block, T* logits, int threads) {
  parallel_for(threads, block.rows, rows_a_piece(block.classes), [&](std::int64_t begin, std::int64_t finish) {
    for (std::int64_t r = begin; r < finish; ++r) {
      T* row = logits + r * block.classes;
      for_lanes<T>(block.classes, [&](std::int64_t i, const auto& lanes) {
        lanes.store(row + i, lanes.load(row + i) + lanes.load(bias + i));
      });
    }
  });
}
}  // namespace

std::int64_t rows_at_once(std::int64_t classes) {
  return std::max(least_rows, logits_at_once / std::max<std::int64_t>(1, classes) / row_step * row_step);
}

template <class T>
ProductCrossEntropy<T>::ProductCrossEntropy(const LogitsProduct& product)
    : given_(product),
      dbias_(Reduction::sum, dtype_of<T>(), {block_count(product.loss), product.loss.classes}, {true, false},
             product.threads) {
  std::size_t working = dbias_.scratch_bytes();
  const std::int64_t classes = product.loss.classes;
  const Operand weight = product.classes_first ? Operand{Layout::dense({classes, product.terms}), "ct"}
                                               : Operand{Layout::dense({product.terms, classes}), "tc"};
  const std::int64_t each = rows_at_once(classes);
  for (std::int64_t i = 0; i < block_count(product.loss); ++i) {
    CrossEntropy loss = product.loss;
    loss.rows = std::min(each, product.loss.rows - i * each);
    const Operand x{Layout::dense({loss.rows, product.terms}), "rt"};
    const Operand logits{Layout::dense({loss.rows, classes}), "rc"};
    blocks_.push_back({i * each, loss, planned<T>(x, weight, logits, product.threads, false),
                       planned<T>(logits, weight, x, product.threads, false),
                       planned<T>(logits, x, weight, product.threads, i > 0),
                       Reducer(Reduction::sum, dtype_of<T>(), logits.layout.shape, {true, false}, product.threads)});
    const Block& block = blocks_.back();
    working = std::max({working, block.logits.scratch_bytes, block.dx.scratch_bytes, block.dweight.scratch_bytes,
                        block.dbias.scratch_bytes()});
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
void ProductCrossEntropy<T>::run(const T* x, const T* weight, const T* bias, const Target* targets, T* sum,
                                 std::int64_t* count, T* dx, T* dweight, T* dbias, void* scratch) const {
  check_targets(targets, given_.loss);
  auto* start = static_cast<std::byte*>(scratch);
  auto* logits = static_cast<T*>(scratch);
  auto* losses = reinterpret_cast<double*>(start + places_.losses);
  auto* logsumexp = reinterpret_cast<T*>(start + places_.logsumexp);
  auto* shares = reinterpret_cast<T*>(start + places_.dbias);
  void* working = start + places_.working;
  const int threads = given_.threads;
  for (const Block& block : blocks_) {
    const T* rows_of_x = x + block.first * given_.terms;
    const Target* rows_of_targets = targets + block.first;
    block.logits.run(rows_of_x, weight, logits, working);
    if (given_.biased) add_to_rows(bias, block.loss, logits, threads);
    row_losses(logits, rows_of_targets, block.loss, losses + block.first, logsumexp + block.first, threads);
    cross_entropy_grad(logits, rows_of_targets, logsumexp + block.first, T{1}, block.loss, logits, threads);
    block.dx.run(logits, weight, dx + block.first * given_.terms, working);
    block.dweight.run(logits, rows_of_x, dweight, working);
    if (given_.biased) block.dbias.run(logits, shares + (&block - blocks_.data()) * given_.loss.classes, working);
  }
  if (given_.biased) dbias_.run(shares, dbias, working);
  sum_losses(losses, targets, given_.loss, sum, count);
}

#define XTAPE_PRODUCT_CROSS_ENTROPY(T, Target)                                                                      \
  template void ProductCrossEntropy<T>::run(const T*, const T*, const T*, const Target*, T*, std::int64_t*, T*, T*, \
                                            T*, void*) const;
template class ProductCrossEntropy<float>;
template class ProductCrossEntropy<double>;
XTAPE_PRODUCT_CROSS_ENTROPY(float, std::int32_t)
XTAPE_PRODUCT_CROSS_ENTROPY(float, std::int64_t)
XTAPE_PRODUCT_CROSS_ENTROPY(double, std::int32_t)
XTAPE_PRODUCT_CROSS_ENTROPY(double, std::int64_t)
#undef XTAPE_PRODUCT_CROSS_ENTROPY

}  // namespace xtape
