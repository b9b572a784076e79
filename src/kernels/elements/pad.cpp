// Padding of arrays.

#include <algorithm>
#include <cstring>

#include "base/threads/threads.hpp"
#include "kernels/elements/copy.hpp"
#include "kernels/elements/loops.hpp"
#include "kernels/elements/scalar.hpp"
#include "kernels/table/kernel_form.hpp"

namespace xtape {

namespace {
constexpr std::int64_t pad_grain = 16384;  // elements per thread; for fewer, another thread does not pay off

/// An array within a larger dense array. The rows of the inner array are copied in their order in memory. The padding
/// value is written between the rows.
struct Framed {
  Loops<2> loops;  ///< Over the inner array, with strides in the input and in the output. Rows are the last axis.
  std::int64_t first = 0;  ///< The position of the first row in the output.
  std::int64_t total = 1;  ///< The number of elements of the output.

  Framed(const Layout& in, const Shape& out, const std::vector<std::int64_t>& before) {
    std::vector<std::int64_t> sizes, ahead;  // per axis of the output
    for (std::size_t i = 0; i < out.size(); ++i) {
      const bool whole = out[i] == in.shape[i];
      if (whole && i > 0 && loops.strides[0].back() == in.strides[i] * out[i]) {  // both axes act as a single axis
        loops.sizes.back() *= out[i];
        loops.strides[0].back() = in.strides[i];
        sizes.back() *= out[i];
        ahead.back() *= out[i];
      } else {
        loops.add(in.shape[i], {in.strides[i], 0});
        sizes.push_back(out[i]);
        ahead.push_back(before[i]);
      }
    }
    for (std::size_t i = sizes.size(); i-- > 0; total *= sizes[i]) {
      loops.strides[1][i] = total;
      first += ahead[i] * total;
    }
  }

  std::size_t outer() const { return loops.rank() - 1; }
  std::int64_t length() const { return loops.sizes.back(); }
  std::int64_t rows() const { return loops.count() / length(); }
};

/// Copies a row. Short rows are common. For short rows, a call of memcpy takes longer than a loop.
template <class Word>
[[gnu::always_inline]] inline void copy_row(const Word* from, std::int64_t step, std::int64_t length, Word* to) {
  constexpr std::int64_t wide = 32 / sizeof(Word), many = 1024;
  if (step != 1) {
    for (std::int64_t i = 0; i < length; ++i) to[i] = from[i * step];
  } else if (length > many) {
    std::memcpy(to, from, static_cast<std::size_t>(length) * sizeof(Word));
  } else if (length >= wide) {
    for (std::int64_t i = 0; i + wide < length; i += wide) std::memcpy(to + i, from + i, wide * sizeof(Word));
    std::memcpy(to + length - wide, from + length - wide, wide * sizeof(Word));
  } else {
    for (std::int64_t i = 0; i < length; ++i) to[i] = from[i];
  }
}

template <class Word>
void write_rows(const Framed& framed, const Word* in, Word value, Word* out, std::int64_t begin, std::int64_t finish) {
  const std::size_t outer = framed.outer();
  const std::int64_t length = framed.length(), step = framed.loops.strides[0].back();
  // Within a run of this many rows, each offset follows from the previous offset by an addition.
  const std::int64_t run = outer > 0 ? framed.loops.sizes[outer - 1] : 1;
  const std::int64_t from_row = outer > 0 ? framed.loops.strides[0][outer - 1] : 0;
  const std::int64_t to_row = outer > 0 ? framed.loops.strides[1][outer - 1] : 0;
  const auto fill = [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t i = from; i < to; ++i) out[i] = value;
  };
  std::int64_t written = begin == 0 ? 0 : framed.loops.offsets(begin - 1, outer)[1] + framed.first + length;
  for (std::int64_t k = begin; k < finish;) {
    auto [from, to] = framed.loops.offsets(k, outer);
    to += framed.first;
    for (const std::int64_t end = std::min(finish, k + run - k % run); k < end; ++k, from += from_row, to += to_row) {
      fill(written, to);
      copy_row(in + from, step, length, out + to);
      written = to + length;
    }
  }
  if (finish == framed.rows()) fill(written, framed.total);
}

template <class Word>
Kernel framed(const Framed& form, std::uint64_t value, int threads) {
  const std::int64_t grain = std::max<std::int64_t>(1, pad_grain / form.length());
  return {[=](const KernelArguments& arguments) {
    parallel_for(threads, form.rows(), grain, [&](std::int64_t begin, std::int64_t finish) {
      write_rows(form, in<Word>(arguments, 0), static_cast<Word>(value), out<Word>(arguments, 0), begin, finish);
    });
  }};
}

[[gnu::cold]] Kernel make_pad(const KernelForm& form) {
  const auto& before = form.get<std::vector<std::int64_t>>("before");
  std::uint64_t value = 0;
  with_element(form.dtype(0), [&](auto scalar) {
    scalar = form.attributes.number("value").as<decltype(scalar)>();
    std::memcpy(&value, &scalar, sizeof scalar);
  });
  if (form.out[0].contiguous() && count_of(form.shape(0)) > 0 && !before.empty()) {
    const Framed rows(form.in[0], form.out[0].shape, before);
    // Threads share short rows. A long row is copied in pieces. Elements of other sizes are rarely padded.
    if (rows.length() <= pad_grain && size_of(form.dtype(0)) == sizeof(std::uint32_t))
      return framed<std::uint32_t>(rows, value, form.threads);
  }
  Layout inside{form.shape(0), form.out[0].strides, form.out[0].offset};
  for (std::size_t i = 0; i < inside.shape.size(); ++i) inside.offset += before[i] * inside.strides[i];
  return copy_into(form, &value, inside);
}
}  // namespace

KernelList list_pad() {
  return {{"pad", make_pad}};
}

}  // namespace xtape
