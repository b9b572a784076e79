// Chooses how a product runs: as few rows times a matrix; as matrix products (on BLAS, in tiles or on the matrix unit),
// if necessary after packing arrays whose strides do not fit; or in plain loops.
#include "product.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "copy.hpp"
#include "product_amx.hpp"
#include "product_axes.hpp"
#include "product_gemm.hpp"
#include "product_loops.hpp"
#include "product_rows.hpp"
#include "product_tiles.hpp"
#include "scratch.hpp"
#include "threads.hpp"

namespace xtape {

namespace {
/// Multiplications; a product of fewer runs on one thread, because a second one would start too late.
constexpr double worth_sharing = 1 << 17;

/// c += computed, for a result that was computed in scratch memory.
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

template <class T>
PlannedProduct by_matrices(const Product& product, const GemmChoice& choice) {
  PlannedProduct planned;
  planned.way = tiles_suit(choice.plan) ? ProductWay::tiles : ProductWay::blas;
  const bool in_bfloat16 =
      std::is_same_v<T, float> && product.precision == Precision::bf16 && bfloat16_tiles_suit(choice.plan);
  if (in_bfloat16) planned.way = ProductWay::bfloat16_tiles;
  if (std::is_same_v<T, float> && amx_suits(choice.plan, product.precision)) planned.way = ProductWay::amx;
  std::array<std::function<void(const void*, void*)>, 3> copies;
  std::array<std::size_t, 3> places{};
  for (std::size_t i = 0; i < 3; ++i) {
    if (!choice.packed[i]) continue;
    ++planned.packed;
    places[i] = planned.scratch_bytes;
    planned.scratch_bytes += whole_lines(static_cast<std::size_t>(count_of(choice.to[i].shape)) * sizeof(T));
    copies[i] = i == 2 && product.accumulate ? make_add<T>(choice.from[i], choice.to[i], product.threads)
                                             : make_copy(product.dtype, choice.from[i], choice.to[i], product.threads);
  }
  MatrixProducts<T> products;
  if (planned.way == ProductWay::tiles)
    products = make_tiles<T>(choice.plan);
  else if (planned.way == ProductWay::blas)
    products.run = [gemm = make_gemm<T>(choice.plan)](const T* a, const T* b, T* c, void*, const void*) {
      gemm(a, b, c);
    };
  if constexpr (std::is_same_v<T, float>) {
    if (planned.way == ProductWay::amx) products = make_amx(choice.plan, product.precision);
    if (planned.way == ProductWay::bfloat16_tiles) products = make_bfloat16_tiles(choice.plan);
  }
  const std::size_t own_place = planned.scratch_bytes;
  planned.scratch_bytes += whole_lines(products.scratch_bytes);
  planned.prepared_bytes = whole_lines(products.prepared_bytes);
  if (products.prepare)
    planned.prepare = [prepare = products.prepare](const void* fixed, void* prepared) {
      prepare(static_cast<const T*>(fixed), prepared);
    };
  planned.multiply = [copies, places, own_place, multiply = products.run](
                         const void* a, const void* b, void* c, void* scratch, const void* prepared) {
    const auto place = [&](std::size_t i) { return static_cast<void*>(static_cast<std::byte*>(scratch) + places[i]); };
    const auto operand = [&](std::size_t i, const void* given) {
      if (!copies[i]) return static_cast<const T*>(given);
      copies[i](given, place(i));
      return static_cast<const T*>(place(i));
    };
    const T* x = operand(0, a);
    const T* y = operand(1, b);
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
  planned.multiply = [run = make_rows<T>(plan)](const void* a, const void* b, void* c, void*, const void*) {
    run(static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(c));
  };
  return planned;
}

template <class T>
PlannedProduct made(const Product& product) {
  const std::vector<Axis> axes = axes_of(product);
  const LoopsPlan loops = loops_of(product, axes);
  if constexpr (std::is_floating_point_v<T>) {
    if (const auto rows = rows_of(product, axes)) return by_rows<T>(*rows);
    const GemmChoice choice = best_gemm(product, axes);
    if (choice.cost < loops_cost(loops)) return by_matrices<T>(product, choice);
  }
  return in_loops<T>(loops);
}

/// The number of multiplications.
double terms_of(const Product& product) {
  double terms = 1;
  for (const Axis& axis : axes_of(product)) terms *= static_cast<double>(axis.size);
  return terms;
}

/// The product if an array is empty: a sum of no terms, which is 0.
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
  Product product = given;
  if (terms_of(product) < worth_sharing) product.threads = 1;
  for (const Layout* layout : {&product.a, &product.b, &product.c})
    if (count_of(layout->shape) == 0) return nothing_to_add(product);
  switch (product.dtype) {
    case Dtype::float32:
      return made<float>(product);
    case Dtype::float64:
      return made<double>(product);
    // Integer products wrap, as in NumPy. C++ defines that for unsigned integers only.
    case Dtype::int32:
      return made<std::uint32_t>(product);
    case Dtype::int64:
      return made<std::uint64_t>(product);
    default:
      throw DtypeError("there is no product of bool arrays: cast them to numbers");
  }
}

}  // namespace xtape
