#include "kernels/elements/copy.hpp"

#include <cstring>

#include "base/arrays/lengths.hpp"
#include "base/threads/threads.hpp"
#include "kernels/elements/loops.hpp"
#include "kernels/elements/scalar.hpp"
#include "kernels/table/kernel_form.hpp"

namespace xtape {

namespace {
constexpr std::int64_t grain_elements = 16384;  // elements per thread; for fewer, another thread does not pay off

/// The side of the square tiles of transposing copies. A tile fits the first-level cache.
constexpr std::int64_t tile = 16;

/// Copies one tile. If a full tile is contiguous along the rows in the input and along the columns in the output, it is
/// transposed in a local array.
template <class Word>
void copy_tile(const Word* from, Word* to, std::int64_t rows, std::int64_t columns, std::int64_t from_row,
               std::int64_t from_column, std::int64_t to_row, std::int64_t to_column) {
  if (rows == tile && columns == tile && from_row == 1 && to_column == 1) {
    Word square[tile][tile];
    for (std::int64_t j = 0; j < tile; ++j)
      for (std::int64_t i = 0; i < tile; ++i) square[i][j] = from[j * from_column + i];
    for (std::int64_t i = 0; i < tile; ++i) std::memcpy(to + i * to_row, square[i], sizeof square[i]);
    return;
  }
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) to[i * to_row + j * to_column] = from[i * from_row + j * from_column];
}

/// A copy whose last two loops, rows and columns, run in tiles.
template <class Word>
std::function<void(const void*, void*)> tiled(const Loops<2>& loops, std::int64_t from_offset, std::int64_t to_offset,
                                              int threads) {
  const std::size_t rank = loops.rank();
  const std::int64_t rows = loops.sizes[rank - 2];
  const std::int64_t columns = loops.sizes[rank - 1];
  const std::int64_t bands = ceiling(rows, tile);  // a band: `tile` rows, all columns
  const std::int64_t count = loops.count() / rows * bands / columns;
  const std::int64_t grain = std::max<std::int64_t>(1, grain_elements / (tile * columns));
  return [=](const void* in, void* out) {
    const Word* from = static_cast<const Word*>(in) + from_offset;
    Word* to = static_cast<Word*>(out) + to_offset;
    const std::int64_t from_row = loops.strides[0][rank - 2], to_row = loops.strides[1][rank - 2];
    const std::int64_t from_column = loops.strides[0][rank - 1], to_column = loops.strides[1][rank - 1];
    parallel_for(threads, count, grain, [&](std::int64_t begin, std::int64_t finish) {
      for (std::int64_t k = begin; k < finish; ++k) {
        const auto [from_start, to_start] = loops.offsets(k / bands, rank - 2);
        const std::int64_t row = k % bands * tile;
        const std::int64_t height = std::min(tile, rows - row);
        for (std::int64_t column = 0; column < columns; column += tile)
          copy_tile(from + from_start + row * from_row + column * from_column,
                    to + to_start + row * to_row + column * to_column, height, std::min(tile, columns - column),
                    from_row, from_column, to_row, to_column);
      }
    });
  };
}

/// A sequence of rows: pieces of the innermost axis. Consecutive rows are `from_row` and `to_row` elements apart.
struct Rows {
  std::int64_t from, to, from_row, to_row, count, length;
};

/// Calls copy(rows) for sequences of rows, distributed over threads.
template <class Copy>
void for_rows(const Loops<2>& loops, int threads, const Copy& copy) {
  const std::size_t outer_rank = loops.rank() - 1;
  const std::int64_t length = loops.sizes[outer_rank];
  const std::int64_t chunk = std::min(length, grain_elements);
  const std::int64_t chunks = ceiling(length, chunk);
  const std::int64_t count = loops.count() / length * chunks;
  const std::int64_t from_step = loops.strides[0][outer_rank], to_step = loops.strides[1][outer_rank];
  // In a sequence of short rows, each offset follows from the previous offset by an addition. Computing each offset
  // from the index of the row would take longer than copying the row.
  const bool runs = chunks == 1 && outer_rank > 0;
  const std::int64_t rows = runs ? loops.sizes[outer_rank - 1] : 1;
  const std::int64_t from_row = runs ? loops.strides[0][outer_rank - 1] : 0;
  const std::int64_t to_row = runs ? loops.strides[1][outer_rank - 1] : 0;
  parallel_for(threads, count, std::max<std::int64_t>(1, grain_elements / chunk),
               [&](std::int64_t begin, std::int64_t finish) {
                 for (std::int64_t k = begin; k < finish;) {
                   const auto [from, to] = loops.offsets(k / chunks, outer_rank);
                   const std::int64_t start = k % chunks * chunk;
                   const std::int64_t end = std::min(finish, k + rows - k % rows);
                   copy(Rows{from + start * from_step, to + start * to_step, from_row, to_row, end - k,
                             std::min(chunk, length - start)});
                   k = end;
                 }
               });
}

/// Copies a contiguous row. For short rows, which are common, a call of memcpy takes longer than a loop.
template <class Word, class Length>
void copy_row(const Word* from, Word* to, Length length) {
  constexpr std::int64_t few = 32, step = 32 / sizeof(Word);
  if (length > few) {
    std::memcpy(to, from, static_cast<std::size_t>(length) * sizeof(Word));
    return;
  }
  std::int64_t i = 0;
  for (; i + step <= length; i += step) std::memcpy(to + i, from + i, step * sizeof(Word));
  for (; i < length; ++i) to[i] = from[i];
}

template <class Word>
std::function<void(const void*, void*)> by_rows(const Loops<2>& loops, std::int64_t from_offset, std::int64_t to_offset,
                                                int threads) {
  return [=](const void* in, void* out) {
    const Word* from = static_cast<const Word*>(in) + from_offset;
    Word* to = static_cast<Word*>(out) + to_offset;
    const std::int64_t from_step = loops.strides[0].back(), to_step = loops.strides[1].back();
    for_rows(loops, threads, [&](const Rows& rows) {
      const auto each = [&](const auto& copy) {
        const Word* x = from + rows.from;
        Word* y = to + rows.to;
        for (std::int64_t row = 0; row < rows.count; ++row, x += rows.from_row, y += rows.to_row) copy(x, y);
      };
      const std::int64_t length = rows.length;
      // Copies of strides stay in registers. The compiler must read captured references again after each store.
      if (from_step == 1 && to_step == 1)
        with_length(length, [&](auto words) { each([&](const Word* x, Word* y) { copy_row(x, y, words); }); });
      else if (from_step == 0 && to_step == 1)
        each([=](const Word* x, Word* y) { std::fill(y, y + length, *x); });
      else
        each([=](const Word* x, Word* y) {
          for (std::int64_t i = 0; i < length; ++i) y[i * to_step] = x[i * from_step];
        });
    });
  };
}

template <class Word>
std::function<void(const void*, void*)> made(const Layout& in, const Layout& out, int threads) {
  if (count_of(in.shape) == 0) return [](const void*, void*) {};
  Loops<2> loops = loops_over(in, out);
  loops.merge();
  loops.sort_by(1);
  loops.merge();
  if (loops.rank() == 0) loops.add(1, {1, 1});
  const std::size_t last = loops.rank() - 1;
  // If input and output are contiguous along different axes, these two axes are copied in tiles.
  std::size_t along = last;
  for (std::size_t i = 0; i < last; ++i)
    if (loops.strides[0][i] == 1 && loops.sizes[i] >= 4) along = i;
  const std::int64_t step = loops.strides[0][last];
  if (along == last || step == 1 || step == 0 || loops.sizes[last] < 4)
    return by_rows<Word>(loops, in.offset, out.offset, threads);
  for (std::size_t i = along; i + 1 < last; ++i) loops.swap(i, i + 1);
  return tiled<Word>(loops, in.offset, out.offset, threads);
}
}  // namespace

std::function<void(const void*, void*)> make_copy(Dtype dtype, const Layout& in, const Layout& out, int threads) {
  if (is_block(dtype)) {
    if (!in.contiguous() || !out.contiguous() || in.offset != 0 || out.offset != 0)
      throw DtypeError(std::string("a part or a transpose of an array of ") + name_of(dtype) +
                       " cannot be copied: dequantize it");
    return [bytes = static_cast<std::size_t>(bytes_of(dtype, count_of(in.shape)))](const void* from, void* to) {
      if (bytes > 0) std::memcpy(to, from, bytes);
    };
  }
  switch (size_of(dtype)) {
    case 8:
      return made<std::uint64_t>(in, out, threads);
    case 4:
      return made<std::uint32_t>(in, out, threads);
    case 2:
      return made<std::uint16_t>(in, out, threads);
    default:
      return made<std::uint8_t>(in, out, threads);
  }
}

std::function<void(void*)> make_fill(Dtype dtype, const Layout& out, const void* value, int threads) {
  std::uint64_t word = 0;
  std::memcpy(&word, value, size_of(dtype));
  const Layout same{out.shape, Strides::filled(out.shape.size(), 0), 0};
  return [word, copy = make_copy(dtype, same, out, threads)](void* to) { copy(&word, to); };
}

Kernel copy_into(const KernelForm& form, const void* value, const Layout& place) {
  return {[fill = make_fill(form.dtype(0), form.out[0], value, form.threads),
           copy = make_copy(form.dtype(0), form.in[0], place, form.threads)](const KernelArguments& arguments) {
    fill(arguments.out[0]);
    copy(arguments.in[0], arguments.out[0]);
  }};
}

namespace {
Kernel make_diag_embed(const KernelForm& form) {
  const std::uint64_t zero = 0;
  Layout diagonal = form.out[0];
  const std::size_t last = diagonal.shape.size() - 1;
  diagonal.strides[last - 1] += diagonal.strides[last];
  diagonal.shape.erase(last);
  diagonal.strides.erase(last);
  return copy_into(form, &zero, diagonal);
}
}  // namespace

KernelList list_copy() {
  return {{"diag_embed", make_diag_embed}};
}

}  // namespace xtape
