/// Products of two arrays, summed over the axes they share and the result lacks, straight from their strides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "xtape/array.hpp"

namespace xtape {

/// c[c_axes] = sum a[a_axes] * b[b_axes]. Axes are letters, one an axis; a letter that stands twice in one operand
/// means its diagonal. Every letter of c stands in a or b, once in c; every letter that c lacks stands in both a and b.
/// Sizes of equal letters are equal. The elements of c must not overlap one another, a or b.
struct Product {
  Dtype dtype = Dtype::float32;  ///< Of all three; not boolean.
  Layout a, b, c;                ///< Their offsets count.
  std::string a_axes, b_axes, c_axes;
  bool accumulate = false;  ///< Adds to what c holds.
  int threads = 1;
  int fixed = -1;  ///< An operand (0: a, 1: b) that stays the same over many runs; -1: neither.
};

/// Plain loops, BLAS, tiles of our own, the matrix unit, or few rows by a matrix: see product_loops.hpp,
/// product_gemm.hpp, product_tiles.hpp, product_amx.hpp, product_rows.hpp.
enum class ProductWay : std::uint8_t { loops, blas, tiles, amx, rows };

/// A product made ready. Equal calls give equal bits for any number of threads.
struct PlannedProduct {
  std::function<void(const void* a, const void* b, void* c, void* scratch, const void* prepared)>
      multiply;
  std::size_t scratch_bytes = 0;  ///< `scratch` and `prepared` must be 64-byte aligned.
  /// Where there is one: makes the fixed operand ready in `prepared`, memory of `prepared_bytes` which all runs need
  /// and leave as it is. The bits are the same as without.
  std::function<void(const void* fixed, void* prepared)> prepare = {};
  std::size_t prepared_bytes = 0;
  void run(const void* a, const void* b, void* c, void* scratch, const void* prepared = nullptr) const {
    multiply(a, b, c, scratch, prepared);
  }
  ProductWay way = ProductWay::loops;
  int packed = 0;  ///< How many of the three had to be rearranged because no stride said it.
};
PlannedProduct make_product(const Product& product);

}  // namespace xtape
