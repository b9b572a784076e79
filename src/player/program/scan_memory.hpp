/// The memory that a scan reads and writes step by step.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "xtape/op/kernel.hpp"

namespace xtape {

using CopyFunction = std::function<void(const void*, void*)>;

/// The location of an operand of the body's steps, relative to the memory of the scan's call.
struct StepOperand {
  enum class From : std::uint8_t { scratch, in, out, fixed };
  From from = From::scratch;
  std::size_t number = 0;      // index of the scan's input or output
  std::byte* fixed = nullptr;  // for kind fixed: the address
  std::int64_t offset = 0;     // in bytes
  std::int64_t stride = 0;     // in bytes, from step to step
};

inline std::byte* address(const StepOperand& operand, const KernelArguments& arguments) {
  switch (operand.from) {
    case StepOperand::From::in:  // steps only read inputs
      return static_cast<std::byte*>(const_cast<void*>(arguments.in[operand.number])) + operand.offset;
    case StepOperand::From::out:
      return static_cast<std::byte*>(arguments.out[operand.number]) + operand.offset;
    case StepOperand::From::fixed:
      return operand.fixed + operand.offset;
    default:
      return static_cast<std::byte*>(arguments.scratch) + operand.offset;
  }
}

/// Writes zeros to a stacked output for the steps that do not take place.
struct StepZeros {
  StepOperand first;      // the slice of the first step
  std::size_t bytes = 0;  // size of a slice if it is dense, else 0
  CopyFunction fill;      // fills one slice
  void write(std::byte* slice, std::int64_t step, std::int64_t steps) const {
    slice += first.stride * step;
    const bool adjacent = bytes > 0 && static_cast<std::size_t>(std::abs(first.stride)) == bytes;
    if (adjacent) {  // fills many short slices at once
      std::memset(std::min(slice, slice + first.stride * (steps - 1)), 0, bytes * static_cast<std::size_t>(steps));
      return;
    }
    for (std::int64_t i = 0; i < steps; ++i, slice += first.stride) fill(&zero, slice);
  }
  static constexpr double zero = 0;  // serves as the zero of every dtype
};

}  // namespace xtape
