/// Products of two strided arrays, summed over the axes that both operands have and the result lacks (einsum of two
/// operands).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "xtape/array.hpp"
#include "xtape/precision.hpp"

namespace xtape {

/// For each operand of a float32 product: its dtype if the operand is narrow, which means stored as bfloat16, float16,
/// int8 or in a block format. Otherwise empty.
using Narrow = std::array<std::optional<Dtype>, 2>;

/// c[c_axes] = sum a[a_axes] * b[b_axes]. The axis labels are one letter per axis. A label that appears twice in an
/// operand selects its diagonal. Every label of c appears once in c, and in a or b. Every label that c lacks appears in
/// both a and b. Axes with equal labels have equal sizes. The elements of c must not overlap each other, a or b.
struct Product {
  Dtype dtype = Dtype::float32;  ///< The dtype of a, b and c. Not boolean.
  Layout a, b, c;                ///< The layouts include the offsets.
  std::string a_axes, b_axes, c_axes;
  /// The precision of float32 products. Products of few rows and a matrix are computed in float32; with precisions that
  /// round to bytes, those with a matrix in blocks in integers.
  Precision precision = Precision::float32;
  Bits bits = Bits::usual;  ///< With Bits::fast, the matrix unit computes float32 products, too.
  bool accumulate = false;  ///< Whether to add to c instead of overwriting it.
  int threads = 1;
  /// The dtypes of a and b if they are narrow. The product converts their elements to float32 while reading them.
  Narrow narrow = {};
  int fixed = -1;  ///< An operand (0: a, 1: b) that stays the same over many runs; -1: neither.
};

/// The implementation of a product: plain loops (product_loops.hpp), register tiles, the matrix unit, few rows times a
/// matrix, integers (all gemm.hpp), or few long sums (axes.hpp).
enum class ProductWay : std::uint8_t { loops, tiles, bfloat16_tiles, amx, rows, dots, bytes };

/// A planned product. Equal calls give equal bits for any number of threads.
struct PlannedProduct {
  std::function<void(const void* a, const void* b, void* c, void* scratch, const void* prepared)> multiply;
  std::size_t scratch_bytes = 0;  ///< `scratch` and `prepared` must be 64-byte aligned.
  /// If not empty, prepares the fixed operand in `prepared`, memory of `prepared_bytes`. All later runs read this
  /// memory and do not change it. The result has the same bits as without preparation.
  std::function<void(const void* fixed, void* prepared)> prepare = {};
  std::size_t prepared_bytes = 0;
  /// A key of the result of `prepare`. Products with equal keys can share the prepared data of the same operand.
  std::string prepared_form = {};
  void run(const void* a, const void* b, void* c, void* scratch, const void* prepared = nullptr) const {
    multiply(a, b, c, scratch, prepared);
  }
  /// Computes the rows [begin, end) of a product by a prepared b: the first axis of a and of c. Empty if the product
  /// has no such rows, or cannot compute them apart.
  std::function<void(const void* a, void* c, const void* prepared, std::int64_t begin, std::int64_t end)> rows = {};
  double terms = 0;  ///< The number of multiplications, if `rows` is not empty.
  ProductWay way = ProductWay::loops;
  int packed = 0;  ///< How many of the three arrays are copied to a dense layout because their strides are unsuitable.
};
PlannedProduct make_product(const Product& product);

}  // namespace xtape
