/// Reads the wire format of protocol buffers with protozero. Skips unknown fields, and fields of an unexpected wire
/// type.
#pragma once

#include <cstdint>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <string_view>

#include "xtape/error.hpp"

namespace xtape::onnx {

using Message = protozero::pbf_reader;

// Labels of `switch (message.tag_and_type())` for a field number.
constexpr std::uint32_t number_field(std::uint32_t field) {
  return protozero::tag_and_type(field, protozero::pbf_wire_type::varint);
}
constexpr std::uint32_t single_field(std::uint32_t field) {  // for a float
  return protozero::tag_and_type(field, protozero::pbf_wire_type::fixed32);
}
constexpr std::uint32_t double_field(std::uint32_t field) {
  return protozero::tag_and_type(field, protozero::pbf_wire_type::fixed64);
}
constexpr std::uint32_t text_field(std::uint32_t field) {  // also for messages and packed lists
  return protozero::tag_and_type(field, protozero::pbf_wire_type::length_delimited);
}

inline std::string_view text_of(const protozero::data_view& view) {
  return {view.data(), view.size()};
}

/// Returns the result of `read`. Throws FileError if `read` finds a violation of the wire format.
template <class Read>
auto undamaged(const Read& read) {
  try {
    return read();
  } catch (const protozero::exception& exception) {
    throw FileError(std::string("it is damaged, or no ONNX file (") + exception.what() + ")");
  }
}

}  // namespace xtape::onnx
