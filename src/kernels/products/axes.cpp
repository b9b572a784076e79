#include "kernels/products/axes.hpp"

#include <algorithm>

#include "kernels/products/gemm.hpp"

namespace xtape {

namespace {
constexpr double nanoseconds_per_copied_element = 1.0;
constexpr double nanoseconds_per_gathered_element = 0.1;  // tiles read most gathered elements in place

/// Whether axes of this role belong to array 0 (a), 1 (b) or 2 (c).
bool stands_in(Role role, std::size_t array) {
  constexpr std::array<Role, 3> without{Role::n, Role::m, Role::k};
  return role != without[array];
}

/// Gives array `which` dense strides. The order is batch axes first, then rows and columns of its matrix, or columns
/// and rows if it is `turned`. Within each group, the order of `axes` applies. Sets the two layouts of the copy in
/// `choice`.
void pack(std::vector<Axis>& axes, std::size_t which, bool turned, std::int64_t offset, GemmChoice& choice) {
  choice.packed[which] = true;
  std::vector<Axis*> order;
  for (Role role : {Role::batch, turned ? Role::n : Role::m, Role::k, turned ? Role::m : Role::n})
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

/// Returns the merged axes of a role as loops over the three arrays.
Loops<3> group(const std::vector<Axis>& axes, Role role) {
  Loops<3> loops;
  for (const Axis& axis : axes)
    if (axis.role == role) loops.add(axis.size, axis.strides);
  loops.merge();
  return loops;
}

/// Removes axis `i` from `loops` and returns its size and strides. Returns size 1 if there is no such axis.
std::pair<std::int64_t, std::array<std::int64_t, 3>> take(Loops<3>& loops, std::size_t i) {
  if (i >= loops.rank()) return {1, {0, 0, 0}};
  const std::pair<std::int64_t, std::array<std::int64_t, 3>> taken{
      loops.sizes[i], {loops.strides[0][i], loops.strides[1][i], loops.strides[2][i]}};
  loops.erase(i);
  return taken;
}

/// Chooses the axes of the matrix product. The other axes become loops around it. Updates `choice` if the result is
/// cheaper.
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
        for (std::size_t i = 0; i < 3; ++i) {
          if (!choice.packed[i]) continue;
          const bool gathered = gathers(plan, i);
          if (gathered) plan.gathered = static_cast<int>(i);
          cost += (gathered ? nanoseconds_per_gathered_element : nanoseconds_per_copied_element) *
                  static_cast<double>(count_of(choice.to[i].shape));
        }
        if (cost < choice.cost) {
          choice.cost = cost;
          choice.plan = plan;
        }
      }
}

/// Sorts axes by decreasing stride: summed axes by their strides in array `sum_leader`, other axes by their strides in
/// c.
void sort_axes(std::vector<Axis>& axes, std::size_t sum_leader) {
  const auto step = [&](const Axis& axis) { return std::abs(axis.strides[axis.role == Role::k ? sum_leader : 2]); };
  std::stable_sort(axes.begin(), axes.end(), [&](const Axis& x, const Axis& y) { return step(x) > step(y); });
}
}  // namespace

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
    // A batch axis with a broadcast operand becomes a row or column axis. This gives one larger product instead of
    // many.
    const bool in_c = product.c_axes.find(axis.letter) != std::string::npos;
    axis.role = !in_c ? Role::k : axis.strides[1] == 0 ? Role::m : axis.strides[0] == 0 ? Role::n : Role::batch;
  }
  return axes;
}

namespace {
constexpr unsigned packed_result = 4, turned = 8;  // which of the two operands of a packed result is gathered

/// Returns the choice, still without a plan for the axes, that copies the arrays of `mask` to dense layouts. Sets
/// `packed` to the axes of these layouts.
GemmChoice with_packed(const Product& product, const std::vector<Axis>& axes, unsigned mask,
                       std::vector<Axis>& packed) {
  GemmChoice choice;
  choice.plan.offsets = {product.a.offset, product.b.offset, product.c.offset};
  choice.plan.threads = product.threads;
  choice.plan.accumulate = product.accumulate && (mask & packed_result) == 0;
  choice.plan.narrow = product.narrow;
  // Whether the fixed operand must be packed again at every run.
  const bool rearranged = product.fixed >= 0 && (mask & (1u << product.fixed)) != 0;
  choice.plan.fixed = rearranged ? -1 : product.fixed;
  packed = axes;
  sort_axes(packed, mask & 2 ? 0 : 1);  // a packed operand takes the axis order of the other operand
  for (std::size_t i = 0; i < 3; ++i)
    if (mask & (1u << i)) pack(packed, i, i == 2 && (mask & turned) != 0, choice.plan.offsets[i], choice);
  return choice;
}

/// Completes `plan` with the sizes and strides of a product of which all rows, columns and terms merge. Returns whether
/// they do.
bool merge_all(const std::vector<Axis>& axes, GemmPlan& plan) {
  Loops<3> m = group(axes, Role::m), n = group(axes, Role::n), k = group(axes, Role::k);
  if (std::max({m.rank(), n.rank(), k.rank()}) > 1) return false;
  std::tie(plan.m, plan.m_strides) = take(m, 0);
  std::tie(plan.n, plan.n_strides) = take(n, 0);
  std::tie(plan.k, plan.k_strides) = take(k, 0);
  plan.outer = group(axes, Role::batch);
  return true;
}
}  // namespace

GemmChoice best_gemm(const Product& product, const std::vector<Axis>& axes) {
  GemmChoice best;
  for (unsigned mask = 0; mask < 16; ++mask) {
    if ((mask & turned) != 0 && ((mask & packed_result) == 0 || (mask & 3) == 0)) continue;
    std::vector<Axis> packed;
    GemmChoice choice = with_packed(product, axes, mask, packed);
    choose_inner(packed, choice);
    if (choice.cost < best.cost) best = choice;
  }
  return best;
}

std::optional<GemmChoice> choice_for_bytes(const Product& product, const std::vector<Axis>& axes) {
  if (!rounds_to_bytes(product.precision)) return std::nullopt;
  const unsigned rows = is_block(product.narrow[1].value_or(Dtype::float32)) ? 1 : 2;  // the operand without blocks
  for (const unsigned mask : {0U, rows, packed_result, rows | packed_result}) {
    std::vector<Axis> packed;
    GemmChoice choice = with_packed(product, axes, mask, packed);
    if (merge_all(packed, choice.plan) && bytes_suit(choice.plan, product.precision)) return choice;
  }
  return std::nullopt;
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

std::optional<GemmPlan> rows_of(const Product& product, const std::vector<Axis>& axes) {
  GemmPlan plan;
  plan.offsets = {product.a.offset, product.b.offset, product.c.offset};
  plan.threads = product.threads;
  plan.accumulate = product.accumulate;
  plan.narrow = product.narrow;
  if (!merge_all(axes, plan)) return std::nullopt;
  return rows_suit(plan) ? std::optional(plan) : std::nullopt;
}

}  // namespace xtape
