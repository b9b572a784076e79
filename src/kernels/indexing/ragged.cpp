// The sizes of the groups are known only at run time, but products are planned beforehand. Each kernel therefore
// contains products for several numbers of rows. A group uses the product with the next larger number of rows, or
// several products one after the other.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/indexing/index_kernels.hpp"
#include "kernels/table/kernels.hpp"
#include "xtape/error.hpp"

namespace xtape {

namespace {
/// Returns numbers of rows up to `most` in ascending order: all up to 8, then four per doubling.
std::vector<std::int64_t> numbers_of_rows(std::int64_t most) {
  std::vector<std::int64_t> numbers;
  std::int64_t rows = 1, step = 1;
  while (rows <= most) {
    numbers.push_back(rows);
    if (rows == 8 * step) step *= 2;
    if (rows > most - step) break;  // the next number may not fit 64 bits
    rows += step;
  }
  return numbers;
}

/// An array divided along its first axis. Each piece begins `step` bytes after the previous piece.
struct RowSlices {
  Layout layout;
  std::int64_t step;
  RowSlices(const Layout& of, Dtype dtype)
      : layout(of), step(of.shape[0] > 1 ? of.strides[0] * static_cast<std::int64_t>(size_of(dtype)) : 0) {}
  /// The layout of `rows` rows.
  Layout rows(std::int64_t rows) const {
    Layout some = layout;
    some.shape[0] = rows;
    return some;
  }
  /// The layout of one element of the first axis.
  Layout one() const {
    Layout inner = layout;
    inner.shape.erase(0);
    inner.strides.erase(0);
    return inner;
  }
  const std::byte* at(const void* array, std::int64_t index) const {
    return static_cast<const std::byte*>(array) + index * step;
  }
  std::byte* at(void* array, std::int64_t index) const { return static_cast<std::byte*>(array) + index * step; }
};

/// The numbers of rows of the groups, which are an input of the kernel.
class Groups {
 public:
  Groups(const char* op, const KernelForm& form)
      : op_(op),
        sizes_(form.in[2], form.dtype(2)),
        count_(form.shape(2)[0]),
        rows_(form.shape(0)[0]),
        wide_(form.dtype(2) == Dtype::int64) {}
  std::int64_t count() const { return count_; }

  std::int64_t size(const void* sizes, std::int64_t group) const {
    const void* at = sizes_.at(sizes, group);
    return wide_ ? *static_cast<const std::int64_t*>(at) : *static_cast<const std::int32_t*>(at);
  }
  /// Returns the sum of the sizes. Throws Error if a size is negative or the sum exceeds the number of rows.
  std::int64_t checked_sum(const void* sizes) const {
    std::int64_t sum = 0;
    for (std::int64_t group = 0; group < count_; ++group) {
      const std::int64_t rows = size(sizes, group);
      if (rows < 0 || rows > rows_ - sum)
        throw Error(std::string(op_) + ": group " + std::to_string(group) + " has size " + std::to_string(rows) +
                    ": it must be between 0 and " + std::to_string(rows_ - sum) +
                    ", the number of rows that the groups before it leave");
      sum += rows;
    }
    return sum;
  }

 private:
  const char* op_;
  RowSlices sizes_;
  std::int64_t count_, rows_;
  bool wide_;
};

/// Returns the kernel of an einsum of inputs 0 and 1 with these layouts. If `adds`, it adds to the result instead of
/// overwriting it.
Kernel product(const KernelForm& form, const char* equation, const std::vector<Layout>& operands, bool adds = false) {
  const auto typed = [](Dtype dtype, const Layout& layout) { return ValueType{dtype, layout.shape}; };
  const Dtype dtype = form.outputs[0].dtype;
  const Layout &a = operands[0], &b = operands[1], &c = operands[2];
  std::vector<ValueType> inputs{typed(form.dtype(0), a), typed(form.dtype(1), b)};
  std::vector<Layout> in{a, b};
  if (adds) inputs.push_back(typed(dtype, c)), in.push_back(c);
  Attributes attributes;
  attributes.set("equation", std::string(equation));
  return kernels().make(adds ? "einsum_add" : "einsum", {inputs,
                                                         {typed(dtype, c)},
                                                         attributes,
                                                         in,
                                                         {c},
                                                         {},
                                                         form.threads,
                                                         form.precision,
                                                         form.bits,
                                                         form.seed,
                                                         form.site});
}

/// A product planned for a number of rows.
struct Planned {
  std::int64_t rows;
  Kernel kernel;
  void run(const void* a, const void* b, void* c, void* scratch) const {
    const void* const in[] = {a, b, c};
    kernel.run({in, &c, scratch});
  }
  friend bool operator<(const Planned& a, std::int64_t rows) { return a.rows < rows; }
};

std::size_t most_scratch(const std::vector<Planned>& planned) {
  std::size_t most = 0;
  for (const Planned& each : planned) most = std::max(most, each.kernel.scratch_bytes);
  return most;
}
}  // namespace

// A product may compute rows beyond its group. The next groups, or the final zeros, overwrite these rows.
Kernel make_ragged_dot(const KernelForm& form) {
  const Groups groups("ragged_dot", form);
  const Dtype dtype = form.outputs[0].dtype;
  const RowSlices x(form.in[0], form.dtype(0)), weights(form.in[1], form.dtype(1)), y(form.out[0], dtype);
  const std::int64_t rows = x.layout.shape[0];
  const std::size_t row_bytes = static_cast<std::size_t>(y.layout.shape[1]) * size_of(dtype);
  std::vector<Planned> planned;
  for (const std::int64_t count : numbers_of_rows(rows))
    planned.push_back({count, product(form, "mk,kn->mn", {x.rows(count), weights.one(), y.rows(count)})});
  return {[=](const KernelArguments& arguments) {
            const void* sizes = arguments.in[2];
            const std::int64_t sum = groups.checked_sum(sizes);
            std::int64_t row = 0;
            for (std::int64_t group = 0; group < groups.count(); ++group)
              for (const std::int64_t end = row + groups.size(sizes, group); row < end;) {
                auto which = std::lower_bound(planned.begin(), planned.end(), end - row);
                if (which == planned.end() || which->rows > rows - row) --which;
                which->run(x.at(arguments.in[0], row), weights.at(arguments.in[1], group), y.at(arguments.out[0], row),
                           arguments.scratch);
                row = std::min(end, row + which->rows);
              }
            const std::size_t rest = static_cast<std::size_t>(rows - sum) * row_bytes;
            if (rest > 0) std::memset(y.at(arguments.out[0], sum), 0, rest);
          },
          most_scratch(planned)};
}

Kernel make_ragged_dot_weights(const KernelForm& form) {
  const Groups groups("ragged_dot_weights", form);
  const Dtype dtype = form.outputs[0].dtype;
  const RowSlices x(form.in[0], form.dtype(0)), y(form.in[1], form.dtype(1)), weights(form.out[0], dtype);
  const std::size_t matrix_bytes = static_cast<std::size_t>(count_of(weights.one().shape)) * size_of(dtype);
  std::vector<Planned> planned[2];  // the first product of a group overwrites, the others add
  for (const std::int64_t count : numbers_of_rows(x.layout.shape[0]))
    for (const bool adds : {false, true})
      planned[adds].push_back({count, product(form, "mk,mn->kn", {x.rows(count), y.rows(count), weights.one()}, adds)});
  return {[=, first = planned[0], others = planned[1]](const KernelArguments& arguments) {
            const void* sizes = arguments.in[2];
            groups.checked_sum(sizes);
            std::int64_t row = 0;
            for (std::int64_t group = 0; group < groups.count(); ++group) {
              std::byte* sum = weights.at(arguments.out[0], group);
              const std::int64_t begin = row, end = row + groups.size(sizes, group);
              if (begin == end && matrix_bytes > 0) std::memset(sum, 0, matrix_bytes);
              while (row < end) {
                const std::vector<Planned>& ways = row == begin ? first : others;
                auto which = std::lower_bound(ways.begin(), ways.end(), end - row);
                if (which == ways.end() || which->rows > end - row) --which;
                which->run(x.at(arguments.in[0], row), y.at(arguments.in[1], row), sum, arguments.scratch);
                row += which->rows;
              }
            }
          },
          std::max(most_scratch(planned[0]), most_scratch(planned[1]))};
}
}  // namespace xtape
