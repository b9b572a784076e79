#include "xtape/array.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <utility>

#include "base/arrays/visit.hpp"
#include "base/messages/wording.hpp"
#include "base/system/process_memory.hpp"
#include "base/system/system.hpp"

namespace xtape {

namespace {
[[noreturn]] void throw_out_of_memory(std::size_t bytes) {
  throw OutOfMemory("out of memory: an array of " + std::to_string(bytes) + " bytes, and " + memory_left_text());
}

/// Maps fresh pages. They are zero and take no memory until they are touched. The weights of a model that is only
/// inspected therefore take no memory.
std::shared_ptr<std::byte> map_zeroed(std::size_t bytes) {
  const std::size_t reserved = bytes + huge_page;  // leaves room to align the start to a huge page
  std::byte* const memory = map_memory(reserved);
  if (memory == nullptr) throw_out_of_memory(bytes);
  void* start = memory;
  std::size_t space = reserved;
  std::align(huge_page, bytes, start, space);
  prefer_huge_pages(static_cast<std::byte*>(start), bytes);
  return {static_cast<std::byte*>(start), [memory, reserved](std::byte*) { unmap_memory(memory, reserved); }};
}

std::shared_ptr<std::byte> allocate_zeroed(std::size_t bytes) {
  if (bytes >= huge_page) return map_zeroed(bytes);
  void* memory = nullptr;
  if (posix_memalign(&memory, 64, std::max<std::size_t>(1, bytes)) != 0) throw_out_of_memory(bytes);
  std::memset(memory, 0, bytes);
  return {static_cast<std::byte*>(memory), [](std::byte* p) { std::free(p); }};
}

/// Calls visit(offset, count, stride) for every run of elements along the last axis, in row-major order.
template <class Visit>
void visit_rows(const Layout& layout, const Visit& visit) {
  if (count_of(layout.shape) == 0) return;
  const std::size_t rank = layout.shape.size();
  if (rank == 0) {
    visit(layout.offset, 1, 1);
    return;
  }
  Shape index = Shape::filled(rank, 0);
  std::int64_t offset = layout.offset;
  for (;;) {
    visit(offset, layout.shape.back(), layout.strides.back());
    std::size_t axis = rank - 1;
    for (;;) {
      if (axis == 0) return;
      --axis;
      offset += layout.strides[axis];
      if (++index[axis] < layout.shape[axis]) break;
      offset -= layout.strides[axis] * layout.shape[axis];
      index[axis] = 0;
    }
  }
}

template <class Word>
void copy_elements(const void* source, const Layout& layout, void* destination) {
  const Word* from = static_cast<const Word*>(source);
  Word* to = static_cast<Word*>(destination);
  visit_rows(layout, [&](std::int64_t offset, std::int64_t count, std::int64_t stride) {
    for (std::int64_t i = 0; i < count; ++i) *to++ = from[offset + i * stride];
  });
}
}  // namespace

namespace {
struct DtypeFacts {
  const char* name;
  std::int64_t bytes;      // of a block
  std::int64_t block = 1;  // elements
};
constexpr DtypeFacts dtypes[] = {{"float32", 4},    {"float64", 8},   {"bfloat16", 2},    {"float16", 2},
                                 {"int32", 4},      {"int64", 8},     {"int8", 1},        {"bool", 1},
                                 {"Q8_0", 34, 32},  {"Q4_0", 18, 32}, {"Q4_K", 144, 256}, {"Q5_K", 176, 256},
                                 {"Q6_K", 210, 256}};  // in the order of Dtype
static_assert(std::size(dtypes) == static_cast<std::size_t>(Dtype::q6_k) + 1);

const DtypeFacts& facts_of(Dtype dtype) {
  return dtypes[static_cast<std::size_t>(dtype)];
}
}  // namespace

std::size_t size_of(Dtype dtype) {
  if (is_block(dtype))
    throw DtypeError(std::string("numbers stored as ") + name_of(dtype) + " have no size of their own");
  return static_cast<std::size_t>(facts_of(dtype).bytes);
}

const char* name_of(Dtype dtype) {
  return facts_of(dtype).name;
}

std::int64_t block_of(Dtype dtype) {
  return facts_of(dtype).block;
}

std::int64_t bytes_of(Dtype dtype, std::int64_t count) {
  const DtypeFacts& facts = facts_of(dtype);
  return (count + facts.block - 1) / facts.block * facts.bytes;
}

Dtype dtype_named(const std::string& name) {
  std::string names;
  for (std::size_t i = 0; i < std::size(dtypes); ++i) {
    const auto dtype = static_cast<Dtype>(i);
    if (name == dtypes[i].name) return dtype;
    if (!is_block(dtype))  // which only weights have
      names += (i == 0 ? "" : dtype != Dtype::boolean ? ", " : " or ") + std::string(dtypes[i].name);
  }
  throw DtypeError("unknown dtype '" + name + "': use " + names);
}

Shape Shape::filled(std::size_t rank, std::int64_t value) {
  Shape shape;
  for (std::size_t i = 0; i < rank; ++i) shape.push_back(value);
  return shape;
}

namespace {
[[noreturn]] void throw_no_axis(std::size_t position, const Shape& shape) {
  throw ShapeError("shape " + to_string(shape) + " has no axis " + std::to_string(position));
}
}  // namespace

void Shape::push_back(std::int64_t size) {
  insert(rank_, size);
}

void Shape::insert(std::size_t position, std::int64_t size) {
  if (position > rank_) throw_no_axis(position, *this);
  if (rank_ == max_rank) throw ShapeError("an array has at most " + std::to_string(max_rank) + " axes");
  std::copy_backward(sizes_ + position, sizes_ + rank_, sizes_ + rank_ + 1);
  sizes_[position] = size;
  ++rank_;
}

void Shape::erase(std::size_t position) {
  if (position >= rank_) throw_no_axis(position, *this);
  std::copy(sizes_ + position + 1, sizes_ + rank_, sizes_ + position);
  --rank_;
}

std::int64_t checked_bytes(Dtype dtype, const Shape& shape) {
  const DtypeFacts& facts = facts_of(dtype);
  std::int64_t bytes = facts.bytes;
  bool empty = false;
  bool fits = true;
  for (const std::int64_t size : shape) {
    if (size < 0) throw ShapeError("sizes must not be negative, got " + to_string(shape));
    if (size == 0)
      empty = true;
    else
      fits = fits && checked_multiply(bytes, size);
  }
  if (!fits)
    throw ShapeError("no array can have shape " + to_string(shape) + ": its elements, " + std::to_string(facts.bytes) +
                     (facts.bytes == 1 ? " byte" : " bytes") + " each, must take less than 2^63 bytes");
  if (facts.block > 1 && !empty && bytes / facts.bytes % facts.block != 0)
    throw ShapeError(std::string(facts.name) + " stores blocks of " + std::to_string(facts.block) +
                     " numbers, and shape " + to_string(shape) + " has " + std::to_string(bytes / facts.bytes));
  return empty ? 0 : bytes / facts.block;
}

std::int64_t count_of(const Shape& shape) {
  std::int64_t count = 1;
  for (std::int64_t size : shape) count *= size;
  return count;
}

std::string to_string(const Shape& shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  return out << to_string(shape);
}

Strides dense_strides(const Shape& shape) {
  Strides strides = shape;
  std::int64_t step = 1;
  for (std::size_t i = shape.size(); i-- > 0; step *= shape[i]) strides[i] = step;
  return strides;
}

Shape broadcast_shapes(const std::vector<Shape>& shapes) {
  std::size_t rank = 0;
  for (const Shape& shape : shapes) rank = std::max(rank, shape.size());
  Shape result = Shape::filled(rank, 1);
  for (const Shape& shape : shapes) {
    const std::size_t lead = rank - shape.size();
    for (std::size_t i = 0; i < shape.size(); ++i) {
      std::int64_t& size = result[lead + i];
      if (shape[i] == size || shape[i] == 1) continue;
      if (size != 1) {
        std::string list;
        for (const Shape& each : shapes)  // rank 0 broadcasts to every shape
          if (!each.empty()) list += (list.empty() ? "" : " and ") + to_string(each);
        throw ShapeError("shapes " + list + " do not broadcast: counted from the back, sizes must be equal or 1");
      }
      size = shape[i];
    }
  }
  return result;
}

std::size_t normal_axis(std::int64_t axis, std::size_t rank) {
  const auto signed_rank = static_cast<std::int64_t>(rank);
  if (axis < -signed_rank || axis >= signed_rank)
    throw ShapeError("axis " + std::to_string(axis) + " is out of range for an array of " + std::to_string(rank) +
                     (rank == 1 ? " axis" : " axes"));
  return static_cast<std::size_t>(axis < 0 ? axis + signed_rank : axis);
}

Layout Layout::dense(const Shape& shape) {
  return {shape, dense_strides(shape), 0};
}

bool Layout::contiguous() const {
  std::int64_t step = 1;
  for (std::size_t i = shape.size(); i-- > 0; step *= shape[i]) {
    if (shape[i] == 0) return true;
    if (shape[i] != 1 && strides[i] != step) return false;
  }
  return true;
}

Layout Layout::broadcast_to(const Shape& target) const {
  const auto refuse = [&] {
    throw ShapeError("an array of shape " + to_string(shape) + " does not broadcast to " + to_string(target) +
                     ": counted from the back, its sizes must be 1 or equal to those");
  };
  if (shape.size() > target.size()) refuse();
  Layout result{target, Strides::filled(target.size(), 0), offset};
  const std::size_t lead = target.size() - shape.size();
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != 1 && shape[i] != target[lead + i]) refuse();
    result.strides[lead + i] = shape[i] == 1 && target[lead + i] != 1 ? 0 : strides[i];
  }
  return result;
}

bool operator==(const Layout& a, const Layout& b) {
  return a.shape == b.shape && a.strides == b.strides && a.offset == b.offset;
}

ArrayView::ArrayView(const void* data, Dtype dtype, const Layout& layout)
    : data_(data), dtype_(dtype), layout_(layout) {
  checked_bytes(dtype, layout.shape);
  if (layout.shape.size() != layout.strides.size())
    throw ShapeError("a view of shape " + to_string(layout.shape) + " needs a stride for each axis, got " +
                     to_string(layout.strides));
}

ArrayView::ArrayView(const Array& array) : ArrayView(array.data(), array.dtype(), Layout::dense(array.shape())) {}

ArrayView::ArrayView(Array&& array) : ArrayView(std::as_const(array)) {
  owner_ = std::move(array.held_);
}

void ArrayView::copy_to(void* destination) const {
  const auto bytes = static_cast<std::size_t>(bytes_of(dtype_, count_of(shape())));
  if (bytes == 0) return;
  require_memory();
  if (destination == nullptr) throw Error("copy_to: the destination of " + std::to_string(bytes) + " bytes is null");
  if (layout_.contiguous()) {
    std::memcpy(destination, static_cast<const char*>(data_) + bytes_of(dtype_, layout_.offset), bytes);
    return;
  }
  switch (size_of(dtype_)) {
    case 8:
      copy_elements<std::uint64_t>(data_, layout_, destination);
      break;
    case 4:
      copy_elements<std::uint32_t>(data_, layout_, destination);
      break;
    case 2:
      copy_elements<std::uint16_t>(data_, layout_, destination);
      break;
    default:
      copy_elements<std::uint8_t>(data_, layout_, destination);
  }
}

void ArrayView::require(Dtype dtype) const {
  require_memory();
  if (dtype != dtype_) throw DtypeError(std::string("the array holds ") + name_of(dtype_) + ", not " + name_of(dtype));
}

void ArrayView::require_memory() const {
  if (data_ == nullptr && count_of(shape()) != 0)
    throw Error(std::string("a view without memory: data() is null, but its type is ") + name_of(dtype_) + " " +
                to_string(shape()));
}

void ArrayView::require_dense() const {
  if (!layout_.contiguous())
    throw Error("a view of shape " + to_string(shape()) + " with the strides " + to_string(layout_.strides) +
                " has gaps: copy it by to() or Array()");
}

void ArrayView::require_count(std::int64_t count) const {
  checked_bytes(dtype_, shape());
  if (count != count_of(shape()))
    throw ShapeError("an array of shape " + to_string(shape()) + " has " + std::to_string(count_of(shape())) +
                     " elements, the given range " + std::to_string(count));
}

double ArrayView::element(const Shape& index) const {
  require_memory();
  const Shape& sizes = shape();
  std::int64_t at = layout_.offset;
  bool inside = index.size() == sizes.size();
  for (std::size_t i = 0; inside && i < sizes.size(); ++i) {
    const std::int64_t k = index[i] < 0 ? index[i] + sizes[i] : index[i];
    inside = k >= 0 && k < sizes[i];
    at += k * layout_.strides[i];
  }
  if (!inside) throw ShapeError("an array of shape " + to_string(sizes) + " has no element " + to_string(index));
  const ArrayView one(data_, dtype_, {{}, {}, at});
  return visit_elements(one, [](const auto* element) { return static_cast<double>(*element); });
}

namespace {
[[noreturn]] void throw_empty() {
  throw Error("the array is empty: it has no memory");
}
}  // namespace

Array::Array(Dtype dtype, const Shape& shape)
    : Array(allocate_zeroed(static_cast<std::size_t>(checked_bytes(dtype, shape))), dtype, shape) {}

Array::Array(const ArrayView& values) : Array(values.dtype(), values.shape()) {
  values.copy_to(data());
}

Array::Array(std::shared_ptr<std::byte> memory, Dtype dtype, const Shape& shape) {
  checked_bytes(dtype, shape);
  if (!memory) throw_empty();
  if (!is_block(dtype) && reinterpret_cast<std::uintptr_t>(memory.get()) % 64 != 0)
    throw Error("the memory of an array must be aligned to 64 bytes");
  held_ = std::make_shared<const Held>(Held{std::move(memory), dtype, shape});
}

void Array::require_memory() const {
  if (!held_) throw_empty();
}

Array Array::clone() const {
  require_memory();
  return Array(ArrayView(*this));
}

Array Array::first(const Shape& shape) {
  require_memory();
  if (checked_bytes(dtype(), shape) > static_cast<std::int64_t>(bytes()))
    throw ShapeError("an array of shape " + to_string(this->shape()) + " has fewer elements than shape " +
                     to_string(shape));
  return {held_->bytes, dtype(), shape};
}

void Array::assign(const ArrayView& values) {
  require_memory();
  if (values.dtype() != dtype())
    throw DtypeError(std::string("cannot assign ") + name_of(values.dtype()) + " values to an array of " +
                     name_of(dtype()));
  if (values.shape() != shape())
    throw ShapeError("cannot assign values of shape " + to_string(values.shape()) + " to an array of shape " +
                     to_string(shape()));
  values.copy_to(data());
}

}  // namespace xtape
