// Choosing how a product runs: as few rows by a matrix, as matrix products (on BLAS, in tiles or on the matrix unit),
// straight or after rearranging what no stride can say, or in plain loops.
#include "product.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <vector>

#include "copy.hpp"
#include "product_amx.hpp"
#include "product_gemm.hpp"
#include "product_loops.hpp"
#include "product_rows.hpp"
#include "product_tiles.hpp"
#include "threads.hpp"

namespace xtape {

namespace {
constexpr double nanoseconds_per_copied_element = 1.0;

/// Where an axis stands decides what it is to a matrix product.
enum class Role { batch, m, n, k };

struct Axis {
  char letter = 0;
  std::int64_t size = 1;
  std::array<std::int64_t, 3> strides{};  // of a, b, c; 0 where it does not stand
  Role role = Role::batch;
};

/// The axes of a product, those of size 1 left out. A letter that stands twice in an operand steps along its diagonal.
std::vector<Axis> axes_of(const Product& product) {
  std::vector<Axis> axes;
  const std::array<const Layout*, 3> layouts{&product.a, &product.b, &product.c};
  const std::array<const std::string*, 3> letters{&product.a_axes, &product.b_axes, &product.c_axes};
  for (std::size_t which = 0; which < 3; ++which)
    for (std::size_t i = 0; i < letters[which]->size(); ++i) {
      const char letter = (*letters[which])[i];
      const std::int64_t size = layouts[which]->shape[i];
      if (size == 1) continue;
      auto found = std::find_if(axes.begin(), axes.end(), [&](const Axis& axis) { return axis.letter == letter; });
      if (found == axes.end()) found = axes.insert(axes.end(), Axis{letter, size, {}, Role::batch});
      found->strides[which] += layouts[which]->strides[i];
    }
  for (Axis& axis : axes) {
    // An operand that repeats along a batch axis may as well not have it: one larger product, not many.
    const bool in_c = product.c_axes.find(axis.letter) != std::string::npos;
    axis.role = !in_c ? Role::k : axis.strides[1] == 0 ? Role::m : axis.strides[0] == 0 ? Role::n : Role::batch;
  }
  return axes;
}

/// A way to compute the product by matrix products: which arrays are rearranged first, and the products after that.
struct GemmChoice {
  std::array<bool, 3> packed{};
  std::array<Layout, 3> from, to;  // of the copies that pack; for c: from what is computed to the result
  GemmPlan plan;
  double cost = std::numeric_limits<double>::infinity();
};

bool stands_in(Role role, std::size_t array) {
  constexpr std::array<Role, 3> without{Role::n, Role::m, Role::k};
  return role != without[array];
}

/// Gives array `which` dense strides: batch axes first, then the rows and columns of its matrix, each in the order in
/// which `axes` stand. Says how to copy between the two layouts.
void pack(std::vector<Axis>& axes, std::size_t which, std::int64_t offset, GemmChoice& choice) {
  choice.packed[which] = true;
  std::vector<Axis*> order;
  for (Role role : {Role::batch, Role::m, Role::k, Role::n})
    for (Axis& axis : axes)
      if (axis.role == role && stands_in(role, which)) order.push_back(&axis);
  Layout loose{{}, {}, offset};
  for (const Axis* axis : order) {
    loose.shape.push_back(axis->size);
    loose.strides.push_back(axis->strides[which]);
  }
  const Layout dense = Layout::dense(loose.shape);
  for (std::size_t i = 0; i < order.size(); ++i) order[i]->strides[which] = dense.strides[i];
  choice.from[which] = which == 2 ? dense : loose;
  choice.to[which] = which == 2 ? loose : dense;
  choice.plan.offsets[which] = 0;
}

/// The axes of a role as loops over the three arrays, neighbours merged.
Loops<3> group(const std::vector<Axis>& axes, Role role) {
  Loops<3> loops;
  for (const Axis& axis : axes)
    if (axis.role == role) loops.add(axis.size, axis.strides);
  loops.merge();
  return loops;
}

/// Takes axis `i` out of `loops` (or nothing, where i is its rank) and returns its size and strides.
std::pair<std::int64_t, std::array<std::int64_t, 3>> take(Loops<3>& loops, std::size_t i) {
  if (i >= loops.rank()) return {1, {0, 0, 0}};
  const std::pair<std::int64_t, std::array<std::int64_t, 3>> taken{
      loops.sizes[i], {loops.strides[0][i], loops.strides[1][i], loops.strides[2][i]}};
  loops.erase(i);
  return taken;
}

/// The best choice of which axes BLAS walks itself, the others being loops around it.
void choose_inner(const std::vector<Axis>& axes, GemmChoice& choice) {
  const Loops<3> batch = group(axes, Role::batch), m_axes = group(axes, Role::m), n_axes = group(axes, Role::n),
                 k_axes = group(axes, Role::k);
  const auto choices = [](const Loops<3>& loops) { return std::max<std::size_t>(1, loops.rank()); };
  for (std::size_t im = 0; im < choices(m_axes); ++im)
    for (std::size_t in = 0; in < choices(n_axes); ++in)
      for (std::size_t ik = 0; ik < choices(k_axes); ++ik) {
        GemmPlan plan = choice.plan;
        Loops<3> m_rest = m_axes, n_rest = n_axes, k_rest = k_axes;
        std::tie(plan.m, plan.m_strides) = take(m_rest, im);
        std::tie(plan.n, plan.n_strides) = take(n_rest, in);
        std::tie(plan.k, plan.k_strides) = take(k_rest, ik);
        if (!gemm_can(plan)) continue;
        plan.outer = batch;
        for (const Loops<3>& rest : {m_rest, n_rest})
          for (std::size_t i = 0; i < rest.rank(); ++i)
            plan.outer.add(rest.sizes[i], {rest.strides[0][i], rest.strides[1][i], rest.strides[2][i]});
        plan.sums = {};
        for (std::size_t i = 0; i < k_rest.rank(); ++i)
          plan.sums.add(k_rest.sizes[i], {k_rest.strides[0][i], k_rest.strides[1][i]});
        double cost = gemm_cost(plan);
        for (std::size_t i = 0; i < 3; ++i)
          if (choice.packed[i])
            cost += nanoseconds_per_copied_element * static_cast<double>(count_of(choice.to[i].shape));
        if (cost < choice.cost) {
          choice.cost = cost;
          choice.plan = plan;
        }
      }
}

/// Puts axes with larger steps first: summed axes by their steps in `sum_leader`, the others by theirs in c.
void sort_axes(std::vector<Axis>& axes, std::size_t sum_leader) {
  const auto step = [&](const Axis& axis) { return std::abs(axis.strides[axis.role == Role::k ? sum_leader : 2]); };
  std::stable_sort(axes.begin(), axes.end(), [&](const Axis& x, const Axis& y) { return step(x) > step(y); });
}

GemmChoice best_gemm(const Product& product, const std::vector<Axis>& axes) {
  GemmChoice best;
  for (unsigned mask = 0; mask < 8; ++mask) {
    GemmChoice choice;
    choice.plan.offsets = {product.a.offset, product.b.offset, product.c.offset};
    choice.plan.threads = product.threads;
    choice.plan.accumulate = product.accumulate && (mask & 4) == 0;
    const bool rearranged = product.fixed >= 0 && (mask & (1u << product.fixed)) != 0;  // anew at every run
    choice.plan.fixed = rearranged ? -1 : product.fixed;
    std::vector<Axis> packed = axes;
    sort_axes(packed, mask & 2 ? 0 : 1);  // what is packed takes the order of what is not
    for (std::size_t i = 0; i < 3; ++i)
      if (mask & (1u << i)) pack(packed, i, choice.plan.offsets[i], choice);
    choose_inner(packed, choice);
    if (choice.cost < best.cost) best = choice;
  }
  return best;
}

LoopsPlan loops_of(const Product& product, const std::vector<Axis>& axes) {
  LoopsPlan plan;
  plan.offsets = {product.a.offset, product.b.offset, product.c.offset};
  plan.accumulate = product.accumulate;
  plan.threads = product.threads;
  for (const Axis& axis : axes)
    if (axis.role == Role::k)
      plan.sums.add(axis.size, {axis.strides[0], axis.strides[1]});
    else
      plan.free.add(axis.size, axis.strides);
  arrange(plan);
  return plan;
}

std::size_t rounded(std::size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

/// c += computed, for a result that was computed elsewhere.
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
  if (std::is_same_v<T, float> && amx_suits(choice.plan)) planned.way = ProductWay::amx;
  std::array<std::function<void(const void*, void*)>, 3> copies;
  std::array<std::size_t, 3> places{};
  for (std::size_t i = 0; i < 3; ++i) {
    if (!choice.packed[i]) continue;
    ++planned.packed;
    places[i] = planned.scratch_bytes;
    planned.scratch_bytes += rounded(static_cast<std::size_t>(count_of(choice.to[i].shape)) * sizeof(T));
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
  if constexpr (std::is_same_v<T, float>)
    if (planned.way == ProductWay::amx) products = make_amx(choice.plan);
  const std::size_t own_place = planned.scratch_bytes;
  planned.scratch_bytes += rounded(products.scratch_bytes);
  planned.prepared_bytes = rounded(products.prepared_bytes);
  if (products.prepare)
    planned.prepare = [prepare = products.prepare](const void* fixed, void* prepared) {
      prepare(static_cast<const T*>(fixed), prepared);
    };
  planned.multiply = [copies, places, own_place, multiply = products.run](const void* a, const void* b, void* c,
                                                                     void* scratch, const void* prepared) {
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
  planned.scratch_bytes = rounded(loops_scratch_bytes(plan, sizeof(T)));
  planned.multiply = [run = make_loops<T>(plan)](const void* a, const void* b, void* c, void* scratch, const void*) {
    run(static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(c), scratch);
  };
  return planned;
}

/// Few rows by a matrix that is read where it lies, if it is such a product.
std::optional<GemmPlan> rows_of(const Product& product, const std::vector<Axis>& axes) {
  Loops<3> m = group(axes, Role::m), n = group(axes, Role::n), k = group(axes, Role::k);
  if (std::max({m.rank(), n.rank(), k.rank()}) > 1) return std::nullopt;
  GemmPlan plan;
  plan.offsets = {product.a.offset, product.b.offset, product.c.offset};
  plan.threads = product.threads;
  plan.accumulate = product.accumulate;
  std::tie(plan.m, plan.m_strides) = take(m, 0);
  std::tie(plan.n, plan.n_strides) = take(n, 0);
  std::tie(plan.k, plan.k_strides) = take(k, 0);
  plan.outer = group(axes, Role::batch);
  return rows_suit(plan) ? std::optional(plan) : std::nullopt;
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

/// A sum of no terms.
PlannedProduct nothing_to_add(const Product& product) {
  PlannedProduct planned;
  if (product.accumulate || count_of(product.c.shape) == 0) {
    planned.multiply = [](const void*, const void*, void*, void*, const void*) {};
    return planned;
  }
  const std::uint64_t zero = 0;
  planned.multiply = [fill = make_fill(product.dtype, product.c, &zero, product.threads)](const void*, const void*, void* c,
                                                                                     void*, const void*) { fill(c); };
  return planned;
}
}  // namespace

PlannedProduct make_product(const Product& product) {
  for (const Layout* layout : {&product.a, &product.b, &product.c})
    if (count_of(layout->shape) == 0) return nothing_to_add(product);
  switch (product.dtype) {
    case Dtype::float32:
      return made<float>(product);
    case Dtype::float64:
      return made<double>(product);
    case Dtype::int32:
      return made<std::int32_t>(product);
    case Dtype::int64:
      return made<std::int64_t>(product);
    default:
      throw DtypeError("there is no product of bool arrays: cast them to numbers");
  }
}

}  // namespace xtape
