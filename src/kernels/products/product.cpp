// Chooses the implementation of a product: the kernel for few rows times a matrix, a matrix product (tiles or AMX), or
// plain loops. Packs operands with unsuitable strides before a matrix product.
#include "kernels/products/product.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "base/threads/threads.hpp"
#include "kernels/elements/copy.hpp"
#include "kernels/elements/elementwise.hpp"
#include "kernels/products/axes.hpp"
#include "kernels/products/gemm.hpp"
#include "kernels/products/product_loops.hpp"
#include "kernels/table/kernels.hpp"
#include "kernels/table/scratch.hpp"

namespace xtape {

#ifdef XTAPE_SHARED_KERNELS
extern const Kernels XTAPE_SHARED_KERNELS;
#endif

namespace {
/// The smallest number of multiplications that uses several threads. Below it, starting a second thread costs more than
/// it saves.
constexpr double worth_sharing = 1 << 17;

/// c += computed, for a result computed in scratch memory.
template <class T>
std::function<void(const void*, void*)> make_add(const Layout& from, const Layout& to, int threads) {
  LoopsPlan plan;
  const Layout one{from.shape, Strides::filled(from.shape.size(), 0), 0};
  plan.free = loops_over(from, one, to);
  plan.offsets = {from.offset, 0, to.offset};
  plan.accumulate = true;
  plan.threads = threads;
  arrange(plan);
  return [run = make_loops<T>(plan)](const void* computed, void* c) {
    const T unit{1};
    run(static_cast<const T*>(computed), &unit, static_cast<T*>(c), nullptr);
  };
}

bool any(const Narrow& narrow) {
  return narrow[0] || narrow[1];
}

const char* name_of_way(ProductWay way) {
  static const char* const names[] = {"loops", "tiles", "bfloat16_tiles", "amx", "rows", "dots", "bytes"};
  return names[static_cast<int>(way)];
}

/// Returns the implementation of matrix products. Only tiles read narrow operands (Product::narrow) without a
/// conversion beforehand. The units for bfloat16 sum in another order, so a product of precision float32 uses one only
/// if its bits may differ between processors.
template <class T>
ProductWay way_of(const Product& product, const GemmPlan& plan) {
  if constexpr (std::is_same_v<T, float>) {
    const bool rounds = rounds_to_bfloat16(product.precision);
    if ((rounds || product.bits == Bits::fast) && !any(plan.narrow) && amx_suits(plan, product.precision))
      return ProductWay::amx;
    if (product.precision == Precision::bf16 && bfloat16_tiles_suit(plan)) return ProductWay::bfloat16_tiles;
  }
  return ProductWay::tiles;
}

/// Returns PlannedProduct::rows, for rows of the plan that consist of the first axis of a and c, and perhaps further
/// axes.
template <class T>
decltype(PlannedProduct::rows) by_first_axis(const Product& product, const GemmPlan& plan,
                                             const MatrixProducts<T>& products) {
  const std::size_t at_a = product.a_axes.find(product.c_axes.substr(0, 1));
  if (at_a != 0 || product.b_axes.find(product.c_axes[0]) != std::string::npos) return {};
  const std::int64_t count = product.c.shape[0], each = plan.m / count;
  if (count < 2 || plan.m % count != 0 || product.a.strides[0] != each * plan.m_strides[0] ||
      product.c.strides[0] != each * plan.m_strides[2])
    return {};
  return
      [rows = products.rows, each](const void* a, void* c, const void* prepared, std::int64_t begin, std::int64_t end) {
        rows(a, static_cast<T*>(c), prepared, begin * each, end * each);
      };
}

template <class T>
PlannedProduct by_matrices(const Product& product, const GemmChoice& choice, ProductWay way) {
  PlannedProduct planned;
  planned.way = way;
  std::array<std::function<void(const void*, void*)>, 3> copies;
  std::array<std::size_t, 3> places{};
  for (std::size_t i = 0; i < 3; ++i) {
    if (!choice.packed[i]) continue;
    ++planned.packed;
    places[i] = planned.scratch_bytes;
    const Dtype dtype = i < 2 ? product.narrow[i].value_or(product.dtype) : product.dtype;
    planned.scratch_bytes += whole_lines(static_cast<std::size_t>(count_of(choice.to[i].shape)) * size_of(dtype));
    copies[i] = i == 2 && product.accumulate ? make_add<T>(choice.from[i], choice.to[i], product.threads)
                                             : make_copy(dtype, choice.from[i], choice.to[i], product.threads);
  }
  MatrixProducts<T> products;
  if (planned.way == ProductWay::tiles) products = make_tiles<T>(choice.plan);
  if constexpr (std::is_same_v<T, float>) {
    if (planned.way == ProductWay::amx) products = make_amx(choice.plan, product.precision);
    if (planned.way == ProductWay::bfloat16_tiles) products = make_bfloat16_tiles(choice.plan);
    if (planned.way == ProductWay::bytes) products = make_bytes(choice.plan);
  }
  const std::size_t own_place = planned.scratch_bytes;
  planned.scratch_bytes += whole_lines(products.scratch_bytes);
  planned.prepared_bytes = whole_lines(products.prepared_bytes);
  planned.prepare = products.prepare;
  if (products.prepare)
    planned.prepared_form = std::string(name_of_way(way)) + " " + name_of(product.dtype) + " " +
                            name_of(product.precision) + " " + fixed_form(choice.plan);
  if (planned.packed == 0 && products.rows) planned.rows = by_first_axis<T>(product, choice.plan, products);
  planned.terms = static_cast<double>(choice.plan.m) * static_cast<double>(choice.plan.n) *
                  static_cast<double>(choice.plan.k * choice.plan.sums.count());
  planned.multiply = [copies, places, own_place, multiply = products.run](const void* a, const void* b, void* c,
                                                                          void* scratch, const void* prepared) {
    const auto place = [&](std::size_t i) { return static_cast<void*>(static_cast<std::byte*>(scratch) + places[i]); };
    const auto operand = [&](std::size_t i, const void* given) -> const void* {
      if (!copies[i]) return given;
      copies[i](given, place(i));
      return place(i);
    };
    const void* x = operand(0, a);
    const void* y = operand(1, b);
    T* z = static_cast<T*>(copies[2] ? place(2) : c);
    multiply(x, y, z, static_cast<std::byte*>(scratch) + own_place, prepared);
    if (copies[2]) copies[2](z, c);
  };
  return planned;
}

template <class T>
PlannedProduct in_loops(const LoopsPlan& plan) {
  PlannedProduct planned;
  planned.scratch_bytes = whole_lines(loops_scratch_bytes(plan, sizeof(T)));
  planned.multiply = [run = make_loops<T>(plan)](const void* a, const void* b, void* c, void* scratch, const void*) {
    run(static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(c), scratch);
  };
  return planned;
}

template <class T>
PlannedProduct by_rows(const GemmPlan& plan) {
  PlannedProduct planned;
  planned.way = ProductWay::rows;
  const MatrixProducts<T> products = make_rows<T>(plan);
  planned.scratch_bytes = whole_lines(products.scratch_bytes);
  planned.multiply = [run = products.run](const void* a, const void* b, void* c, void* scratch, const void*) {
    run(a, b, static_cast<T*>(c), scratch, nullptr);
  };
  return planned;
}

/// Returns the choice for this implementation. Only the tile kernel can gather an operand without packing it. A view
/// with more elements than its array, such as sliding windows, is then never materialised.
GemmChoice for_way(GemmChoice choice, ProductWay way) {
  if (way != ProductWay::tiles) choice.plan.gathered = -1;
  if (choice.plan.gathered < 0) return choice;
  const auto which = static_cast<std::size_t>(choice.plan.gathered);
  choice.packed[which] = false;
  choice.plan.gathered_from = choice.from[which];
  return choice;
}

/// Whether the choice copies an operand that has a block format, which cannot be rearranged.
bool rearranges_blocks(const Product& product, const GemmChoice& choice) {
  for (std::size_t i = 0; i < 2; ++i)
    if (choice.packed[i] && is_block(product.narrow[i].value_or(product.dtype))) return true;
  return false;
}

/// Whether one operand has blocks, and the other one is narrow in another way.
bool blocks_by_narrow(const Narrow& narrow) {
  return narrow[0] && narrow[1] && is_block(*narrow[0]) != is_block(*narrow[1]);
}

/// Returns a product that, before each run, converts a narrow operand to float32 in scratch memory. If both operands
/// are narrow, it converts the smaller one.
PlannedProduct widened_before(Product product);

template <class T>
[[gnu::cold]] PlannedProduct made(const Product& product) {
  const std::vector<Axis> axes = axes_of(product);
  const LoopsPlan loops = loops_of(product, axes);
  if constexpr (std::is_floating_point_v<T>) {
    if constexpr (std::is_same_v<T, float>) {
      if (const auto bytes = choice_for_bytes(product, axes)) return by_matrices<T>(product, *bytes, ProductWay::bytes);
      if (rounds_to_bytes(product.precision) && blocks_by_narrow(product.narrow)) return widened_before(product);
    }
    if (const auto rows = rows_of(product, axes)) return by_rows<T>(*rows);
    if constexpr (std::is_same_v<T, float>)
      if (auto dots = dots_of(product, axes)) return make_dots<T>(std::move(*dots));
    const GemmChoice choice = best_gemm(product, axes);
    if (choice.cost < loops_cost(loops)) {
      const ProductWay way = way_of<T>(product, choice.plan);
      if (!any(product.narrow) ||
          ((way == ProductWay::tiles || way == ProductWay::bfloat16_tiles) && !rearranges_blocks(product, choice)))
        return by_matrices<T>(product, for_way(choice, way), way);
    }
  }
  return any(product.narrow) ? widened_before(product) : in_loops<T>(loops);
}

/// Converts an array to dense floats, with scratch memory.
struct Widening {
  std::function<void(const void* from, float* to, void* scratch)> run;
  std::size_t scratch_bytes = 0;
};

Widening make_widen(Dtype dtype, const Layout& from, int threads) {
  if (is_block(dtype))
    return {
        [widen = make_widen_blocks(dtype, from, threads)](const void* blocks, float* to, void*) { widen(blocks, to); }};
  const std::int64_t count = count_of(from.shape);
  return {
      [gather = make_copy(dtype, from, Layout::dense(from.shape), threads), widen = make_cast(dtype, Dtype::float32),
       count, size = size_of(dtype), threads](const void* narrow, float* to, void* scratch) {
        gather(narrow, scratch);
        constexpr std::int64_t grain = 1 << 14;
        parallel_for(threads, count, grain, [&](std::int64_t begin, std::int64_t finish) {
          const void* elements = static_cast<std::byte*>(scratch) + static_cast<std::size_t>(begin) * size;
          void* floats = to + begin;
          widen({&elements, &floats, begin, finish - begin});
        });
      },
      whole_lines(static_cast<std::size_t>(count) * size_of(dtype))};
}

PlannedProduct widened_before(Product product) {
  const std::array<Layout*, 2> layouts{&product.a, &product.b};
  const std::size_t small = count_of(product.a.shape) <= count_of(product.b.shape) ? 0 : 1;
  std::size_t which = product.narrow[small] ? small : 1 - small;
  // Integers need the blocks themselves.
  if (rounds_to_bytes(product.precision) && product.narrow[1 - which] && is_block(*product.narrow[which]))
    which = 1 - which;
  const Dtype dtype = *product.narrow[which];
  const Layout dense = Layout::dense(layouts[which]->shape);
  const auto widen = make_widen(dtype, *layouts[which], product.threads);
  *layouts[which] = dense;
  product.narrow[which].reset();
  if (product.fixed == static_cast<int>(which)) product.fixed = -1;
  PlannedProduct planned = make_product(product);
  const std::size_t wide = planned.scratch_bytes;
  const std::size_t narrow = wide + whole_lines(static_cast<std::size_t>(count_of(dense.shape)) * sizeof(float));
  planned.scratch_bytes = narrow + widen.scratch_bytes;
  planned.multiply = [=, run = widen.run, multiply = planned.multiply](const void* a, const void* b, void* c,
                                                                       void* scratch, const void* prepared) {
    auto* memory = static_cast<std::byte*>(scratch);
    run(which == 0 ? a : b, reinterpret_cast<float*>(memory + wide), memory + narrow);
    multiply(which == 0 ? memory + wide : a, which == 0 ? b : memory + wide, c, scratch, prepared);
  };
  return planned;
}

/// Returns the number of multiplications.
double terms_of(const Product& product) {
  double terms = 1;
  for (const Axis& axis : axes_of(product)) terms *= static_cast<double>(axis.size);
  return terms;
}

/// Returns the product for the case that an array is empty. The sum of no terms is 0.
PlannedProduct nothing_to_add(const Product& product) {
  PlannedProduct planned;
  if (product.accumulate || count_of(product.c.shape) == 0) {
    planned.multiply = [](const void*, const void*, void*, void*, const void*) {};
    return planned;
  }
  const std::uint64_t zero = 0;
  planned.multiply = [fill = make_fill(product.dtype, product.c, &zero, product.threads)](
                         const void*, const void*, void* c, void*, const void*) { fill(c); };
  return planned;
}
}  // namespace

PlannedProduct make_product(const Product& given) {
  if (given.bits == Bits::same && rounds_to_bfloat16(given.precision) && given.dtype == Dtype::float32)
    throw Error("precision " + std::string(name_of(given.precision)) +
                " gives other bits on another processor, which bits \"same\" refuses: use precision float32");
  Product product = given;
  if (terms_of(product) < worth_sharing) product.threads = 1;
  for (const Layout* layout : {&product.a, &product.b, &product.c})
    if (count_of(layout->shape) == 0) return nothing_to_add(product);
#ifdef XTAPE_SHARED_KERNELS
  if (!is_floating(product.dtype)) return XTAPE_SHARED_KERNELS.make_product(product);
#else
  // Integer products wrap, as in NumPy. C++ defines wrapping only for unsigned integers.
  if (product.dtype == Dtype::int32) return made<std::uint32_t>(product);
  if (product.dtype == Dtype::int64) return made<std::uint64_t>(product);
#endif
  if (product.dtype == Dtype::float32) return made<float>(product);
  if (product.dtype == Dtype::float64) return made<double>(product);
  throw DtypeError("there is no product of bool arrays: cast them to numbers");
}

}  // namespace xtape
