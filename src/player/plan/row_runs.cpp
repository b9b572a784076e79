#include "player/plan/row_runs.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "base/arrays/lengths.hpp"
#include "kernels/table/kernels.hpp"
#include "kernels/table/loop_kernel.hpp"
#include "kernels/table/row_kernel.hpp"

namespace xtape {

namespace {
constexpr std::int64_t copied_by_loop = 64;  // elements; make_copy distributes larger copies over threads
constexpr std::int64_t copied_by_rows = 32;  // elements; copying shorter rows one by one takes too long
constexpr double worth_a_piece = 4000;       // nanoseconds
constexpr std::int64_t product_rows = 8;     // a product reads its matrix once for so many rows, if there are enough

/// What the steps of a run read and write of a buffer.
class Access {
 public:
  /// Adds an operand. Returns whether each row still reads and writes memory of its own.
  bool add(const BufferRef& ref, const RowKernel::Operand& operand, bool writes) {
    const std::int64_t begin = ref.byte_offset, end = begin + operand.bytes;
    if (end_ == 0) {
      stride_ = operand.stride;
      begin_ = begin;
    }
    same_ &= operand.stride == stride_;
    written_ |= writes;
    begin_ = std::min(begin_, begin);
    end_ = std::max(end_, end);
    return !written_ || (same_ && end_ - begin_ <= stride_);
  }

 private:
  bool same_ = true;  // whether all rows are at the same distance
  bool written_ = false;
  std::int64_t stride_ = 0, begin_ = 0, end_ = 0;  // of row 0, in bytes. No row ends at 0.
};

/// Finds the runs step by step.
class RunFinder {
 public:
  RunFinder(const PlannedProgram& planned, int threads, std::int64_t times)
      : planned_(planned), threads_(threads), times_(times) {
    for (const PlannedStep& step : planned.steps) all_steps_ += step.once ? 0 : 1;
  }

  std::vector<RowRun> find() {
    for (std::size_t i = 0; i < planned_.steps.size(); ++i)
      if (!planned_.steps[i].once) add(i);
    finish();
    return std::move(runs_);
  }

 private:
  /// Adds a step to the run, or begins another run if it does not fit.
  void add(std::size_t index) {
    const PlannedStep& step = planned_.steps[index];
    const RowKernel* kernel = row_kernel_of(*step.kernel);
    if (kernel == nullptr) return finish();
    if (run_.steps > 0 && (kernel->rows != run_.rows || !fits(step, *kernel))) finish();
    if (run_.steps == 0) {
      if (!fits(step, *kernel)) return finish();
      run_ = {index, index, 0, kernel->rows};
    }
    run_.last = index;
    ++run_.steps;
    nanoseconds_ += kernel->nanoseconds;
  }

  bool fits(const PlannedStep& step, const RowKernel& kernel) {
    bool fit = true;
    for (std::size_t i = 0; i < kernel.operands.size(); ++i) {
      const BufferRef& ref = planned_.operands[step.first + i];
      fit &= buffers_[ref.buffer].add(ref, kernel.operands[i], i >= step.inputs);
    }
    return fit;
  }

  /// Ends the run, and keeps it if dividing it pays off. A single step divides its work by itself, and not only by
  /// rows.
  void finish() {
    const bool whole = run_.steps == all_steps_;
    const double row = nanoseconds_ * static_cast<double>(whole ? times_ : 1);
    const bool pays = 2 * run_.rows >= threads_ && static_cast<double>(run_.rows) * row >= 2 * worth_a_piece;
    if (pays && (whole || run_.steps > 1)) {
      const std::int64_t worth = std::llround(std::ceil(worth_a_piece / row));
      run_.grain = std::max(worth, std::min(product_rows, ceiling(run_.rows, threads_)));
      runs_.push_back(run_);
    }
    run_ = {};
    nanoseconds_ = 0;
    buffers_.clear();
  }

  const PlannedProgram& planned_;
  int threads_;
  std::int64_t times_;
  std::size_t all_steps_ = 0;
  std::vector<RowRun> runs_ = {};
  // The run that grows:
  RowRun run_ = {};
  double nanoseconds_ = 0;  // of a row
  std::unordered_map<int, Access> buffers_ = {};
};
}  // namespace

Kernel copy_kernel(const ValueType& type, const Layout& in, const Layout& out, int threads) {
  const std::int64_t count = count_of(type.shape);
  if (!is_block(type.dtype) && count <= copied_by_loop && in.contiguous() && out.contiguous())
    return one_loop(copy_loop(size_of(type.dtype)), count);
  RowKernel kernel{[copy = kernels().make_copy(type.dtype, in, out, threads)](const KernelArguments& arguments) {
    copy(arguments.in[0], arguments.out[0]);
  }};
  kernel.rows = type.shape.empty() ? 0 : type.shape[0];
  const std::int64_t row = kernel.rows == 0 ? 0 : count / kernel.rows;
  if (kernel.rows < 2 || row < copied_by_rows || is_block(type.dtype) || !kernel.add(in, size_of(type.dtype)) ||
      !kernel.add(out, size_of(type.dtype)))
    return {kernel.all};
  const RowCopy copy{kernels().make_copy(type.dtype, row_of(in), row_of(out), 1), kernel.operands[0].stride,
                     kernel.operands[1].stride};
  kernel.compute = [copy](const KernelArguments& arguments, std::int64_t begin, std::int64_t end, std::int64_t) {
    copy(arguments.in[0], arguments.out[0], begin, end);
  };
  constexpr double nanoseconds_per_element = 0.1;
  kernel.nanoseconds = nanoseconds_per_element * static_cast<double>(row);
  return {kernel};
}

std::vector<RowRun> find_row_runs(const PlannedProgram& planned, int threads, std::int64_t times) {
  return RunFinder(planned, threads, times).find();
}

}  // namespace xtape
