// Arrays, DLPack, and stores.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "c/dlpack.hpp"
#include "c/values.hpp"
#include "xtape/init.hpp"
#include "xtape/safetensors.hpp"

namespace xtape::c {

namespace {
struct DtypeRow {
  std::uint8_t code, bits;
  Dtype dtype;
};
constexpr DtypeRow dlpack_dtypes[] = {
    {dlpack::floating, 32, Dtype::float32},     {dlpack::floating, 64, Dtype::float64},
    {dlpack::floating, 16, Dtype::float16},     {dlpack::bfloat, 16, Dtype::bfloat16},
    {dlpack::signed_integer, 32, Dtype::int32}, {dlpack::signed_integer, 64, Dtype::int64},
    {dlpack::signed_integer, 8, Dtype::int8},   {dlpack::boolean, 8, Dtype::boolean},
};

Dtype dtype_from(const dlpack::Tensor& tensor) {
  for (const DtypeRow& row : dlpack_dtypes)
    if (row.code == tensor.dtype.code && row.bits == tensor.dtype.bits && tensor.dtype.lanes == 1) return row.dtype;
  throw DtypeError("the tensor's type has the DLPack code " + std::to_string(tensor.dtype.code) + " and " +
                   std::to_string(tensor.dtype.bits) +
                   " bits: convert it to float16, bfloat16, float32, float64, int8, int32, int64 or bool");
}

/// The elements of a tensor, without a copy.
ArrayView view_of(const dlpack::Tensor& tensor) {
  if (tensor.device.type != dlpack::cpu)
    throw Error("the tensor is on a device of DLPack's kind " + std::to_string(tensor.device.type) +
                ": copy it to the CPU, whose kind is 1");
  const Dtype dtype = dtype_from(tensor);
  std::byte* data = static_cast<std::byte*>(tensor.data);
  if (data != nullptr) data += tensor.byte_offset;
  return array_view({data, static_cast<xtape_dtype>(dtype), tensor.rank, tensor.shape, tensor.strides}, "managed");
}

/// What another library holds: the object of an array, and the sizes that its tensor points to.
template <class Form>
struct Exported {
  Form form = {};
  std::shared_ptr<void> owner;
  Shape shape;
  Strides strides;

  static void drop(Form* form) { delete static_cast<Exported*>(form->context); }
};

template <class Form>
Form* exported(const ArrayObject& array, const std::shared_ptr<void>& owner) {
  const xtape_view view = described(array.view);
  const auto* row = std::ranges::find(dlpack_dtypes, array.view.dtype(), &DtypeRow::dtype);
  if (row == std::end(dlpack_dtypes))
    throw DtypeError(std::string("DLPack has no type for arrays of ") + name_of(array.view.dtype()));
  auto made = std::make_unique<Exported<Form>>();
  made->owner = owner;
  made->shape = array.view.shape();
  made->strides = array.view.layout().strides;
  made->form.context = made.get();
  made->form.deleter = Exported<Form>::drop;
  made->form.tensor = {view.data,           {dlpack::cpu, 0},      view.rank, {row->code, row->bits, 1},
                       made->shape.begin(), made->strides.begin(), 0};
  return &made.release()->form;
}

/// Calls the deleter of another library's tensor.
template <class Form>
struct Deleter {
  void operator()(Form* form) const {
    if (form != nullptr && form->deleter != nullptr) form->deleter(form);
  }
};

template <class Form>
std::shared_ptr<ArrayObject> imported(Form* form, bool writable) {
  const ArrayView view = view_of(form->tensor);
  // Until the object exists, an error leaves the tensor to the caller.
  auto holder = std::make_shared<std::unique_ptr<Form, Deleter<Form>>>();
  auto object = std::make_shared<ArrayObject>(view, holder, writable);
  holder->reset(form);
  return object;
}
}  // namespace
}  // namespace xtape::c

using namespace xtape::c;
using xtape::Array;
using xtape::Store;

xtape_status xtape_array_new(const xtape_view* values, xtape_array** array) noexcept {
  return guarded("xtape_array_new", [&] {
    require(values, "values");
    require(array, "array");
    if (values->data != nullptr)
      return give(array, std::make_shared<ArrayObject>(Array(array_view(*values, "values"))));
    const xtape::Dtype dtype = dtype_of(values->dtype);
    give(array, std::make_shared<ArrayObject>(Array(dtype, shape_of(values->rank, values->shape, dtype))));
  });
}

xtape_status xtape_array_view(const xtape_array* array, xtape_view* view) noexcept {
  return guarded("xtape_array_view", [&] {
    require(view, "view");
    *view = described(use<ArrayObject>(array, "array")->view);
  });
}

xtape_status xtape_array_from_dlpack(void* managed, int32_t versioned, xtape_array** array) noexcept {
  return guarded("xtape_array_from_dlpack", [&] {
    require(managed, "managed");
    require(array, "array");
    if (versioned == 0) return give(array, imported(static_cast<dlpack::Managed*>(managed), true));
    auto* tensor = static_cast<dlpack::ManagedVersioned*>(managed);
    if (tensor->version.major != 1)
      throw xtape::Error("the tensor has version " + std::to_string(tensor->version.major) +
                         " of DLPack, and this library reads version 1");
    give(array, imported(tensor, (tensor->flags & dlpack::read_only) == 0));
  });
}

xtape_status xtape_array_to_dlpack(const xtape_array* array, int32_t versioned, void** managed) noexcept {
  return guarded("xtape_array_to_dlpack", [&] {
    require(managed, "managed");
    const Used<ArrayObject> object = use<ArrayObject>(array, "array");
    if (versioned == 0) {
      if (!object->writable) throw xtape::Error("the array is read-only, which only a versioned tensor can say");
      *managed = exported<dlpack::Managed>(*object, object.shared());
      return;
    }
    auto* made = exported<dlpack::ManagedVersioned>(*object, object.shared());
    made->version = {1, 0};
    made->flags = object->writable ? 0 : dlpack::read_only;
    *managed = made;
  });
}

xtape_status xtape_store_new(xtape_store** store) noexcept {
  return guarded("xtape_store_new", [&] {
    require(store, "store");
    give(store, std::make_shared<StoreObject>(Store()));
  });
}

xtape_status xtape_store_set(xtape_store* store, const char* name, const xtape_array* array) noexcept {
  return guarded("xtape_store_set", [&] {
    const Used<StoreObject> into = use<StoreObject>(store, "store");
    const std::string key = text_of(name, "name");
    into->arrays.set(key, use<ArrayObject>(array, "array")->as_weight());
  });
}

xtape_status xtape_store_get(const xtape_store* store, const char* name, xtape_array** array) noexcept {
  return guarded("xtape_store_get", [&] {
    require(array, "array");
    const Used<StoreObject> from = use<StoreObject>(store, "store");
    give(array, std::make_shared<ArrayObject>(from->arrays.at(text_of(name, "name"))));
  });
}

xtape_status xtape_store_name(const xtape_store* store, size_t index, const char** name) noexcept {
  return guarded("xtape_store_name", [&] {
    require(name, "name");
    const Used<StoreObject> from = use<StoreObject>(store, "store");
    *name = index < from->arrays.size() ? from->arrays[index].name.c_str() : nullptr;
  });
}

namespace {
/// Reads "zeros", 0.5 or {"normal": {"std": 0.02}}.
xtape::Initialiser initialiser_of(const std::string& text) {
  const xtape::JsonNode node(text, std::string("initialiser of ") + Call::function(), xtape::JsonErrors::definition);
  if (node.json().is_number()) return node.number();
  if (node.is_string()) return {node.text(), {}};
  const auto entries = node.entries();
  if (entries.size() != 1) node.fail(R"(an initialiser belongs here: "zeros", 0.5 or {"normal": {"std": 0.02}})");
  xtape::Initialiser::Settings settings;
  for (const auto& [name, value] : entries[0].second.entries()) settings.emplace_back(name, value.number());
  return {entries[0].first, settings};
}
}  // namespace

xtape_status xtape_store_initialise(xtape_store* store, const char* name, xtape_dtype dtype, int32_t rank,
                                    const int64_t* shape, const char* initialiser, uint64_t seed) noexcept {
  return guarded("xtape_store_initialise", [&] {
    const Used<StoreObject> into = use<StoreObject>(store, "store");
    const std::string key = text_of(name, "name");
    const xtape::Initialiser rule = initialiser_of(text_of(initialiser, "initialiser"));
    const xtape::ValueType wanted{dtype_of(dtype), shape_of(rank, shape, dtype_of(dtype))};
    if (const Array* there = into->arrays.find(key)) {
      const xtape::ValueType type{there->dtype(), there->shape()};
      if (type != wanted) throw xtape::ShapeError("'" + key + "' is " + to_string(type) + ", not " + to_string(wanted));
      return;
    }
    Array made(wanted.dtype, wanted.shape);
    initialise(made, rule, seed, key);
    into->arrays.add(key, std::move(made));
  });
}

xtape_status xtape_store_load(const char* path, xtape_store** store) noexcept {
  return guarded("xtape_store_load", [&] {
    require(store, "store");
    give(store, std::make_shared<StoreObject>(xtape::load_arrays(text_of(path, "path"))));
  });
}

xtape_status xtape_store_save(const xtape_store* store, const char* path) noexcept {
  return guarded("xtape_store_save", [&] {
    const Used<StoreObject> from = use<StoreObject>(store, "store");
    xtape::save_arrays(text_of(path, "path"), from->arrays);
  });
}
