/// The structs of DLPack 1.0 (https://dmlc.github.io/dlpack/latest/c_api.html), which other libraries make and read.
#pragma once

#include <cstdint>

namespace xtape::c::dlpack {

enum Device : std::int32_t { cpu = 1 };
enum Code : std::uint8_t {
  signed_integer = 0,
  unsigned_integer = 1,
  floating = 2,
  bfloat = 4,
  complex = 5,
  boolean = 6
};
inline constexpr std::uint64_t read_only = 1;  ///< A flag of ManagedVersioned.

struct Tensor {
  void* data;
  struct {
    std::int32_t type, id;
  } device;
  std::int32_t rank;
  struct {
    std::uint8_t code, bits;
    std::uint16_t lanes;
  } dtype;
  std::int64_t* shape;
  std::int64_t* strides;  ///< In elements. Null: row-major without gaps.
  std::uint64_t byte_offset;
};

/// DLManagedTensor, without a version.
struct Managed {
  Tensor tensor;
  void* context;
  void (*deleter)(Managed*);
};

/// DLManagedTensorVersioned. Another major version has another layout behind the deleter.
struct ManagedVersioned {
  struct {
    std::uint32_t major, minor;
  } version;
  void* context;
  void (*deleter)(ManagedVersioned*);
  std::uint64_t flags;
  Tensor tensor;
};

}  // namespace xtape::c::dlpack
