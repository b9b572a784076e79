/// Arrays: a non-owning view, and an array that owns its memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>
#if defined(__has_include) && __cplusplus >= 202002L
#if __has_include(<span>)
#include <span>
#endif
#endif

#include "xtape/error.hpp"
#include "xtape/layout.hpp"
#include "xtape/named.hpp"

namespace xtape {

class Array;

/// xtensor's classes for elements T: `type` is the array class, and `view` is the adaptor class for foreign memory. The
/// header xtape/xtensor.hpp, which xtape/xtape.hpp includes, defines XtensorOf. Only sources that convert to xtensor
/// need it.
template <class T>
struct XtensorOf;

template <class E, class = void>
struct HasStrides : std::false_type {};  ///< Whether E has strides(), like xtensor's arrays.
template <class E>
struct HasStrides<E, std::void_t<decltype(std::declval<const E&>().strides())>> : std::true_type {};

template <class E, class = void>
struct IsOfEigen : std::false_type {};  ///< Whether E is an Eigen matrix, array, vector, block or map.
template <class E>
struct IsOfEigen<E, std::void_t<decltype(std::declval<const E&>().outerStride()), decltype(E::IsVectorAtCompileTime),
                                decltype(E::IsRowMajor)>> : std::true_type {};

/// The element type of E, if an ArrayView can be made from E. E can be an Eigen matrix, an xtensor container or adaptor
/// (with data(), shape(), strides() and data_offset()), or a contiguous range such as std::vector, std::array and
/// std::span (with data() and size()).
template <class E, class T = std::remove_cv_t<std::remove_pointer_t<decltype(std::declval<const E&>().data())>>,
          class = decltype(std::declval<const E&>().size()),
          class = std::enable_if_t<HasStrides<E>::value || is_element<T>>>
using ElementOf = T;

/// A view of an array, contiguous or strided. Players read their inputs and return their outputs as views. Converts
/// from Array, from xtensor containers and adaptors, from Eigen vectors (one axis) and matrices (two axes), and from
/// std::vector, std::array and std::span. The last three have one axis unless a shape is given. Elements need only
/// their natural alignment.
///
/// A view of a variable does not own the memory, which must outlive the view. A view made from a temporary takes
/// ownership of the temporary, and copies of the view share it. So feeds and lists of named arrays can contain
/// temporaries. The memory behind a temporary std::span or adaptor must still outlive the view.
class ArrayView {
 public:
  ArrayView() = default;  ///< An empty view. data() is null.
  /// `data` is the address of offset 0. Throws ShapeError if the number of strides differs from the number of axes.
  /// Errors of checked_bytes propagate.
  ArrayView(const void* data, Dtype dtype, const Layout& layout);
  ArrayView(const Array& array);  // NOLINT: converts by intent
  ArrayView(Array&& array);       // NOLINT: converts by intent

  /// A view of an xtensor container or adaptor, of an Eigen matrix in either storage order, or of a contiguous range as
  /// an array of one axis.
  template <class E, class T = ElementOf<std::remove_reference_t<E>>>
  ArrayView(E&& e)  // NOLINT: converts by intent
      : dtype_(dtype_of<T>()) {
    hold(std::forward<E>(e), [&](const auto& held) {
      data_ = held.data();
      if constexpr (HasStrides<std::remove_reference_t<E>>::value) {
        layout_.shape = Shape(held.shape().begin(), held.shape().end());
        layout_.strides = Strides(held.strides().begin(), held.strides().end());
        layout_.offset = static_cast<std::int64_t>(held.data_offset());
      } else {
        layout_ = layout_of(held);
      }
    });
  }
  /// A view of a contiguous range as a row-major array of this shape. Throws ShapeError if range and shape differ in
  /// the number of elements, Error if the range is an Eigen vector with gaps. Errors of checked_bytes propagate.
  template <class R, class T = ElementOf<std::remove_reference_t<R>>>
  ArrayView(R&& range, const Shape& shape) : dtype_(dtype_of<T>()), layout_(layout_of(range)) {
    using Range = std::remove_reference_t<R>;
    if constexpr (IsOfEigen<Range>::value)
      static_assert(Range::IsVectorAtCompileTime, "a matrix of Eigen has its own shape: write ArrayView(matrix)");
    data_ = range.data();
    require_dense();
    layout_.shape = shape;
    require_count(static_cast<std::int64_t>(range.size()));
    layout_ = Layout::dense(shape);
    hold(std::forward<R>(range), [&](const auto& held) { data_ = held.data(); });
  }

  const void* data() const { return data_; }  ///< The address of offset 0. It need not be the address of an element.
  Dtype dtype() const { return dtype_; }
  const Shape& shape() const { return layout_.shape; }
  const Layout& layout() const { return layout_; }

  /// A pointer to the first element. layout().strides gives the positions of the other elements. Throws DtypeError if T
  /// is not the view's element type, Error if data() is null but the shape has elements.
  template <class T>
  const T* as() const {
    require(dtype_of<T>());
    return static_cast<const T*>(data_) + layout_.offset;
  }
  /// A copy as an xtensor array. Errors are those of `as`.
  template <class T>
  typename XtensorOf<T>::type to() const {
    require(dtype_of<T>());
    auto copy = XtensorOf<T>::type::from_shape(std::vector<std::size_t>(shape().begin(), shape().end()));
    copy_to(copy.data());
    return copy;
  }
  /// Returns the elements as an xtensor view, without a copy. The xtensor view is valid as long as the elements exist.
  /// Errors are those of `as`. Throws Error if the view has gaps.
  template <class T>
  typename XtensorOf<const T>::view tensor() const {
    require_dense();
    return XtensorOf<const T>::over(as<T>(), shape());
  }
#if defined(__cpp_lib_span)
  /// The elements in row-major order. Errors are those of `tensor`.
  template <class T>
  std::span<const T> span() const {
    require_dense();
    return {as<T>(), static_cast<std::size_t>(count_of(shape()))};
  }
#endif
  /// Returns the element with these indices (one per axis) as a double, for any dtype. Negative indices count from the
  /// back. Throws ShapeError if the number of indices is wrong or an index is out of range, Error if data() is null.
  template <class... Place>
  double operator()(Place... places) const {
    static_assert((std::is_integral<Place>::value && ...), "an element's indices are integers");
    return element(Shape{static_cast<std::int64_t>(places)...});
  }
  double element(const Shape& index) const;  ///< The same as operator().
  /// Writes the elements in row-major order to `destination`, which must not overlap the viewed memory. Throws Error if
  /// there are elements and either pointer is null.
  void copy_to(void* destination) const;

 private:
  void require(Dtype dtype) const;
  void require_memory() const;
  void require_dense() const;
  void require_count(std::int64_t count) const;
  /// The layout of an Eigen matrix, or of a contiguous range.
  template <class E>
  static Layout layout_of(const E& e) {
    if constexpr (!IsOfEigen<E>::value) {
      return Layout::dense({static_cast<std::int64_t>(e.size())});
    } else if constexpr (E::IsVectorAtCompileTime) {
      return {{e.size()}, {e.innerStride()}, 0};
    } else {
      const std::int64_t inner = e.innerStride(), outer = e.outerStride();
      return {{e.rows(), e.cols()}, E::IsRowMajor ? Strides{outer, inner} : Strides{inner, outer}, 0};
    }
  }
  /// Calls see(held). `held` is e itself, or the copy that a temporary was moved to.
  template <class E, class See>
  void hold(E&& e, const See& see) {
    if constexpr (std::is_lvalue_reference<E>::value) {
      see(e);
    } else {
      auto kept = std::make_shared<std::remove_const_t<std::remove_reference_t<E>>>(std::forward<E>(e));
      see(*kept);
      owner_ = std::move(kept);
    }
  }

  const void* data_ = nullptr;
  Dtype dtype_ = Dtype::float32;
  Layout layout_;
  std::shared_ptr<const void> owner_;  // owns a temporary; otherwise null
};

/// A handle to a dense row-major array that owns its memory. The memory is aligned to 64 bytes. Memory of 2 MiB or more
/// is aligned for huge pages, and uses them if the system grants them. Copies of the handle share the elements. The
/// last handle frees the elements. Access to the elements is not synchronised.
///
/// The elements of a constant Array are constant. A new handle made from a constant Array could write the elements, so
/// the copy must be explicit: `Array(a)` shares the elements, `a.clone()` copies them, and `Array b = a` does not
/// compile.
class Array {
 public:
  /// An empty array. data() is null, and the array converts to false. A moved-from array is also empty.
  Array() = default;
  Array(Array& other) = default;
  explicit Array(const Array& other) = default;
  Array(Array&& other) noexcept = default;
  Array& operator=(const Array& other) = default;
  Array& operator=(Array&& other) noexcept = default;
  ~Array() = default;
  /// An array of zeros. Throws Error if the system refuses the memory. Errors of checked_bytes propagate.
  Array(Dtype dtype, const Shape& shape);
  explicit Array(const ArrayView& values);  ///< A dense copy of `values`. Throws like the constructor above.

  /// A handle on `memory`, which must hold an array of this type. Throws Error if `memory` is null or not aligned to 64
  /// bytes (blocks need no alignment, so that they can be a part of a mapped file). Errors of checked_bytes propagate.
  Array(std::shared_ptr<std::byte> memory, Dtype dtype, const Shape& shape);

  explicit operator bool() const { return held_ != nullptr; }
  Dtype dtype() const { return held_ ? held_->dtype : Dtype::float32; }
  const Shape& shape() const { return held_ ? held_->shape : no_shape; }
  std::int64_t count() const { return count_of(shape()); }
  std::size_t bytes() const { return static_cast<std::size_t>(bytes_of(dtype(), count())); }
  void* data() { return held_ ? held_->bytes.get() : nullptr; }
  const void* data() const { return held_ ? held_->bytes.get() : nullptr; }
  // The following functions throw Error if the array is empty.

  /// `as` returns a pointer to the first element. `to` returns a copy as an xtensor array. Both throw DtypeError if T
  /// is not the array's element type.
  template <class T>
  T* as() {
    return const_cast<T*>(std::as_const(*this).as<T>());
  }
  template <class T>
  const T* as() const {
    require_memory();
    return ArrayView(*this).as<T>();
  }
  template <class T>
  typename XtensorOf<T>::type to() const {
    require_memory();
    return ArrayView(*this).to<T>();
  }
  /// Returns the elements as an xtensor view, without a copy: `weight.tensor<float>() -= rate *
  /// player.tensor<float>(g);`. The view is valid as long as a handle on the elements exists. Errors are those of `as`.
  template <class T>
  typename XtensorOf<T>::view tensor() {
    return XtensorOf<T>::over(as<T>(), shape());
  }
  template <class T>
  typename XtensorOf<const T>::view tensor() const {
    return XtensorOf<const T>::over(as<T>(), shape());
  }
#if defined(__cpp_lib_span)
  /// The elements in row-major order. Errors are those of `as`.
  template <class T>
  std::span<T> span() {
    return {as<T>(), static_cast<std::size_t>(count())};
  }
  template <class T>
  std::span<const T> span() const {
    return {as<T>(), static_cast<std::size_t>(count())};
  }
#endif
  /// An element of any dtype, as a double. See ArrayView.
  template <class... Place>
  double operator()(Place... places) const {
    require_memory();
    return ArrayView(*this)(places...);
  }
  /// Overwrites the elements. All handles on this array see the new elements. Throws ShapeError or DtypeError if the
  /// shape or dtype of `values` differs from that of this array.
  void assign(const ArrayView& values);
  Array clone() const;  ///< A copy with its own memory.
  /// A handle on the same memory with another shape. The new array consists of the first elements of this array, in
  /// row-major order. Throws ShapeError if `shape` has a negative size or more elements than this array.
  Array first(const Shape& shape);

 private:
  friend class ArrayView;
  void require_memory() const;

  struct Held {
    std::shared_ptr<std::byte> bytes;
    Dtype dtype;
    Shape shape;
  };
  static inline const Shape no_shape = {};
  std::shared_ptr<const Held> held_;  // one pointer, because every node of a tape has an Array
};

template <>
inline constexpr const char* kind_of_value<Array> = "array";
template <>
inline constexpr const char* kind_of_value<ArrayView> = "array";
/// Arrays by name that outlive tapes: weights, optimiser moments, carried states. Copies share the elements.
using Store = Named<Array>;

}  // namespace xtape
