#include "kernels/attention/attention.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "base/threads/threads.hpp"
#include "kernels/elements/copy.hpp"
#include "kernels/products/product.hpp"
#include "kernels/random/draws.hpp"
#include "kernels/reductions/reduce.hpp"
#include "kernels/table/scratch.hpp"

namespace xtape {

namespace {
constexpr std::int64_t most_block_queries = 128;
// The number of keys that a block reads is rounded up to a multiple of the key step, which is one eighth of all keys.
constexpr std::int64_t key_steps = 8;
constexpr std::int64_t least_key_step = 64;  // the smallest key step

/// Indices into AttentionPlan::heads.
enum Which : std::size_t { of_q, of_k, of_v, of_y, of_mask, of_places, of_dq, of_dk, of_dv };

/// An operand of matrix products only. It may therefore be stored as bfloat16, float16 or int8 (AttentionPlan::narrow).
class Operand {
 public:
  Operand(const void* data, Dtype dtype) : data_(static_cast<const std::byte*>(data)), bytes_(size_of(dtype)) {}
  const void* at(std::int64_t offset) const { return data_ + offset * static_cast<std::int64_t>(bytes_); }

 private:
  const std::byte* data_;
  std::size_t bytes_;  // bytes per element
};

/// An operand of a product: its strides, and its dtype if that is bfloat16, float16 or int8 in a float32 attention.
struct OperandMatrix {
  AttentionPlan::Matrix strides;
  std::optional<Dtype> narrow = {};
  OperandMatrix transposed() const { return {{strides.column, strides.row}, narrow}; }
};

/// c [m, n] (+)= sum over l of a [m, l] b [l, n], on one thread.
PlannedProduct matrix_product(const AttentionPlan& plan, std::int64_t m, std::int64_t l, std::int64_t n,
                              const OperandMatrix& a, const OperandMatrix& b, AttentionPlan::Matrix c,
                              bool accumulate) {
  Product product;
  product.dtype = plan.dtype;
  product.precision = plan.precision;
  product.bits = plan.bits;
  product.narrow = {a.narrow, b.narrow};
  product.a = {{m, l}, {a.strides.row, a.strides.column}, 0};
  product.b = {{l, n}, {b.strides.row, b.strides.column}, 0};
  product.c = {{m, n}, {c.row, c.column}, 0};
  product.a_axes = "ml";
  product.b_axes = "ln";
  product.c_axes = "mn";
  product.accumulate = accumulate;
  return make_product(product);
}

/// The matrix products for a block of queries and the leading keys to which the block attends.
struct Products {
  PlannedProduct scores, outputs;                // forward
  PlannedProduct weight_cotangents, dq, dk, dv;  // backward
  std::size_t scratch_bytes = 0;
};
Products products_of(const AttentionPlan& plan, std::int64_t queries, std::int64_t keys, bool backward) {
  const OperandMatrix block{{keys, 1}};
  const OperandMatrix q{plan.q, plan.narrow[of_q]}, k{plan.k, plan.narrow[of_k]}, v{plan.v, plan.narrow[of_v]},
      dy{plan.y, plan.narrow[of_y]};
  Products made;
  const auto make = [&](std::int64_t m, std::int64_t l, std::int64_t n, const OperandMatrix& a, const OperandMatrix& b,
                        AttentionPlan::Matrix c, bool accumulate) {
    PlannedProduct product = matrix_product(plan, m, l, n, a, b, c, accumulate);
    made.scratch_bytes = std::max(made.scratch_bytes, product.scratch_bytes);
    return product;
  };
  made.scores = make(queries, plan.width, keys, q, k.transposed(), block.strides, false);
  if (!backward) {
    made.outputs = make(queries, keys, plan.value_width, block, v, plan.y, false);
    return made;
  }
  made.weight_cotangents = make(queries, plan.value_width, keys, dy, v.transposed(), block.strides, false);
  made.dv = make(keys, queries, plan.value_width, block.transposed(), dy, plan.dv, true);
  made.dq = make(queries, keys, plan.width, block, k, plan.dq, false);
  made.dk = make(keys, queries, plan.width, block.transposed(), q, plan.dk, true);
  return made;
}

/// Sets `rows` by `columns` elements to 0.
template <class T>
void clear(T* to, AttentionPlan::Matrix matrix, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) to[i * matrix.row + j * matrix.column] = T{0};
}

template <class T>
class BlockedAttention {
 public:
  [[gnu::cold]] BlockedAttention(const AttentionPlan& plan, bool backward)
      : plan_(plan),
        blocks_(std::max<std::int64_t>(1, ceiling(plan.queries, most_block_queries))),
        rows_(ceiling(plan.queries, blocks_)),
        key_step_(std::max(least_key_step, ceiling(plan.keys, key_steps))),
        steps_(ceiling(plan.keys, key_step_)) {
    blocks_ = std::max<std::int64_t>(1, ceiling(plan.queries, std::max<std::int64_t>(1, rows_)));
    for (const std::int64_t rows : {rows_, plan.queries - (blocks_ - 1) * rows_})
      for (std::int64_t step = 1; step <= steps_; ++step) {
        products_.push_back(products_of(plan, rows, keys_of(step), backward));
        product_bytes_ = std::max(product_bytes_, products_.back().scratch_bytes);
      }
    block_bytes_ = whole_lines(static_cast<std::size_t>(rows_ * plan.keys) * sizeof(T));
    buffers_ = backward ? (plan.rate > 0 ? 3 : 2) : 1;
  }

  std::size_t scratch_bytes() const { return static_cast<std::size_t>(plan_.threads) * bytes_of_thread(); }

  void forward(const void* q_data, const void* k_data, const void* v_data, const bool* mask, T* y, std::byte* scratch,
               std::uint64_t step) const {
    const Operand q = factor(of_q, q_data), k = factor(of_k, k_data), v = factor(of_v, v_data);
    parallel_pieces(
        plan_.threads, plan_.heads.count() * blocks_, 1, [&](std::int64_t begin, std::int64_t end, std::int64_t piece) {
          const Memory memory = memory_of(scratch, piece);
          for (std::int64_t task = begin; task < end; ++task) {
            const auto at = plan_.heads.offsets(task / blocks_, plan_.heads.rank());
            const Block block = block_of(task % blocks_, mask + at[of_mask]);
            T* to = y + at[of_y] + block.first * plan_.y.row;
            if (block.keys == 0) {
              clear(to, plan_.y, block.rows, plan_.value_width);
              continue;
            }
            weigh(block, q.at(at[of_q] + block.first * plan_.q.row), k.at(at[of_k]), mask + at[of_mask], memory);
            drop_some(block, at[of_places], step, memory.weights, memory.weights);
            block.products->outputs.run(memory.weights, v.at(at[of_v]), to, memory.product);
          }
        });
  }

  void backward(const void* q_data, const void* k_data, const void* v_data, const bool* mask, const void* dy_data,
                T* dq, T* dk, T* dv, std::byte* scratch, std::uint64_t step) const {
    const Operand q = factor(of_q, q_data), k = factor(of_k, k_data), v = factor(of_v, v_data),
                  dy = factor(of_y, dy_data);
    parallel_pieces(
        plan_.threads, plan_.heads.count(), 1, [&](std::int64_t begin, std::int64_t end, std::int64_t piece) {
          const Memory memory = memory_of(scratch, piece);
          for (std::int64_t head = begin; head < end; ++head) {
            const auto at = plan_.heads.offsets(head, plan_.heads.rank());
            clear(dk + at[of_dk], plan_.dk, plan_.keys, plan_.width);
            clear(dv + at[of_dv], plan_.dv, plan_.keys, plan_.value_width);
            for (std::int64_t i = 0; i < blocks_; ++i) {
              const Block block = block_of(i, mask + at[of_mask]);
              T* dq_block = dq + at[of_dq] + block.first * plan_.dq.row;
              if (block.keys == 0) {
                clear(dq_block, plan_.dq, block.rows, plan_.width);
                continue;
              }
              const void* q_block = q.at(at[of_q] + block.first * plan_.q.row);
              const void* dy_block = dy.at(at[of_y] + block.first * plan_.y.row);
              weigh(block, q_block, k.at(at[of_k]), mask + at[of_mask], memory);
              const T* dropped = memory.weights;
              if (plan_.rate > 0) {
                drop_some(block, at[of_places], step, memory.weights, memory.dropped);
                dropped = memory.dropped;
              }
              block.products->dv.run(dropped, dy_block, dv + at[of_dv], memory.product);
              block.products->weight_cotangents.run(dy_block, v.at(at[of_v]), memory.cotangents, memory.product);
              drop_as(dropped, block, memory.cotangents);
              softmax_grad<T>(memory.weights, memory.cotangents, memory.cotangents, static_cast<T>(plan_.scale),
                              block.rows, block.keys);
              block.products->dq.run(memory.cotangents, k.at(at[of_k]), dq_block, memory.product);
              block.products->dk.run(memory.cotangents, q_block, dk + at[of_dk], memory.product);
            }
          }
        });
  }

 private:
  /// A block of queries [first, first + rows), which attends to the first `keys` keys.
  struct Block {
    std::int64_t first, rows, keys;
    const Products* products;
  };
  struct Memory {
    T *weights, *cotangents, *dropped;
    void* product;
  };

  Operand factor(Which which, const void* data) const { return {data, plan_.narrow[which].value_or(plan_.dtype)}; }

  std::size_t bytes_of_thread() const { return buffers_ * block_bytes_ + product_bytes_; }
  Memory memory_of(std::byte* scratch, std::int64_t piece) const {
    std::byte* own = scratch + static_cast<std::size_t>(piece) * bytes_of_thread();
    const auto block = [&](std::size_t i) { return reinterpret_cast<T*>(own + i * block_bytes_); };
    return {block(0), block(1), block(2), own + buffers_ * block_bytes_};
  }

  std::int64_t keys_of(std::int64_t step) const { return std::min(plan_.keys, step * key_step_); }

  Block block_of(std::int64_t index, const bool* mask) const {
    Block block{index * rows_, std::min(rows_, plan_.queries - index * rows_), 0, nullptr};
    const bool* rows = mask + block.first * plan_.mask.row;
    std::int64_t seen = 0;
    for (std::int64_t i = plan_.mask.row == 0 ? 1 : block.rows; i-- > 0 && seen < plan_.keys;)
      seen = last_seen(rows + i * plan_.mask.row, plan_.mask.column, plan_.keys, seen);
    const std::int64_t step = ceiling(seen, key_step_);
    if (step == 0) return block;
    block.keys = keys_of(step);
    block.products = &products_[(block.rows == rows_ ? 0 : steps_) + step - 1];
    return block;
  }

  /// Computes the weights of a block, before dropout.
  void weigh(const Block& block, const void* q, const void* k, const bool* mask, const Memory& memory) const {
    block.products->scores.run(q, k, memory.weights, memory.product);
    const Shape shape{block.rows, block.keys};
    masked_softmax<T>(memory.weights, Layout::dense(shape), static_cast<T>(plan_.scale),
                      mask + block.first * plan_.mask.row, {shape, {plan_.mask.row, plan_.mask.column}, 0},
                      memory.weights, 1);
  }

  /// Applies dropout to a block. An element's random number depends on its index in the array of all scores.
  void drop_some(const Block& block, std::int64_t place, std::uint64_t step, const T* from, T* to) const {
    if (plan_.rate == 0) return;
    const double keep = 1 - plan_.rate;
    // If the block contains all keys, its rows follow one another in the array of all scores. They are then processed
    // as one long row.
    const bool whole = plan_.places_row == block.keys;
    const std::int64_t rows = whole ? 1 : block.rows, columns = whole ? block.rows * block.keys : block.keys;
    for (std::int64_t i = 0; i < rows; ++i)
      drop<T>({plan_.key, step}, place + (block.first + i) * plan_.places_row, columns, keep, static_cast<T>(1 / keep),
              from + i * columns, to + i * columns);
  }

  /// Applies the dropout of drop_some to the cotangents. An element was dropped where the weight after dropout,
  /// `dropped`, is 0. Weights that were 0 before dropout are treated in the same way, because they contribute to no
  /// gradient.
  void drop_as(const T* dropped, const Block& block, T* cotangents) const {
    if (plan_.rate == 0) return;
    const T scale = static_cast<T>(1 / (1 - plan_.rate));
#pragma omp simd
    for (std::int64_t i = 0; i < block.rows * block.keys; ++i)
      cotangents[i] = dropped[i] != T{0} ? cotangents[i] * scale : T{0};
  }

  AttentionPlan plan_;
  std::int64_t blocks_, rows_;  // blocks of queries, and queries per block; the last block may have fewer
  std::int64_t key_step_, steps_;
  // The first `steps_` elements are for full blocks, the other elements for the last block. In each of these two
  // groups, the first element is for one key step, the second for two, and so on.
  std::vector<Products> products_;
  std::size_t product_bytes_ = 0, block_bytes_ = 0, buffers_ = 1;
};

template <class T>
Kernel attention_of(const AttentionPlan& plan) {
  const auto blocked = std::make_shared<const BlockedAttention<T>>(plan, false);
  return {[blocked, masked = plan.masked](const KernelArguments& arguments) {
            const auto& [in, out] = std::pair(arguments.in, arguments.out);
            blocked->forward(in[0], in[1], in[2], mask_of(arguments, 3, masked), static_cast<T*>(out[0]),
                             static_cast<std::byte*>(arguments.scratch), arguments.step);
          },
          blocked->scratch_bytes()};
}

template <class T>
Kernel attention_grad_of(const AttentionPlan& plan) {
  const auto blocked = std::make_shared<const BlockedAttention<T>>(plan, true);
  return {[blocked, masked = plan.masked](const KernelArguments& arguments) {
            const auto& [in, out] = std::pair(arguments.in, arguments.out);
            blocked->backward(in[0], in[1], in[2], mask_of(arguments, 4, masked), in[3], static_cast<T*>(out[0]),
                              static_cast<T*>(out[1]), static_cast<T*>(out[2]),
                              static_cast<std::byte*>(arguments.scratch), arguments.step);
          },
          blocked->scratch_bytes()};
}

Kernel make_attention(const KernelForm& form);

/// The kernel for operands of which some have blocks: widens them to scratch memory before each run.
Kernel widened_before(const KernelForm& form) {
  struct Operand {
    std::size_t input;
    std::size_t place;
    std::function<void(const void*, float*)> widen;
  };
  std::vector<Operand> operands;
  std::vector<ValueType> types = form.inputs;
  std::vector<Layout> in = form.in;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (!is_block(types[i].dtype)) continue;
    operands.push_back({i, bytes, make_widen_blocks(types[i].dtype, in[i], form.threads)});
    bytes += whole_lines(static_cast<std::size_t>(count_of(types[i].shape)) * sizeof(float));
    types[i].dtype = Dtype::float32;
    in[i] = Layout::dense(types[i].shape);
  }
  const Kernel attention = make_attention({types, form.outputs, form.attributes, in, form.out, form.fixed, form.threads,
                                           form.precision, form.bits, form.seed, form.site});
  return {[operands, bytes, attention, count = types.size()](const KernelArguments& arguments) {
            std::array<const void*, 4> all{};
            std::copy_n(arguments.in, count, all.begin());
            auto* memory = static_cast<std::byte*>(arguments.scratch);
            for (const Operand& each : operands) {
              each.widen(all[each.input], reinterpret_cast<float*>(memory + each.place));
              all[each.input] = memory + each.place;
            }
            KernelArguments wide = arguments;
            wide.in = all.data();
            wide.scratch = memory + bytes;
            attention.run(wide);
          },
          bytes + attention.scratch_bytes};
}

/// y = dropout(softmax(masked_fill(scale * q k', mask, -inf))) v. The result is 0 for a query whose keys are all
/// masked.
[[gnu::cold]] Kernel make_attention(const KernelForm& form) {
  const AttentionPlan plan = plan_of_attention(form, false);
  if (query_attention_suits(plan)) return make_query_attention(plan);
  if (std::ranges::any_of(form.inputs, [](const ValueType& type) { return is_block(type.dtype); }))
    return widened_before(form);
  return plan.dtype == Dtype::float64 ? attention_of<double>(plan) : attention_of<float>(plan);
}
/// The gradients of attention. The weights are recomputed.
[[gnu::cold]] Kernel make_attention_grad(const KernelForm& form) {
  const AttentionPlan plan = plan_of_attention(form, true);
  return plan.dtype == Dtype::float64 ? attention_grad_of<double>(plan) : attention_grad_of<float>(plan);
}
}  // namespace

KernelList list_attention() {
  return {{"attention", make_attention}, {"attention_grad", make_attention_grad}};
}

}  // namespace xtape
