/// Reads the wire format of protocol buffers with protozero. Skips unknown fields, and fields of an unexpected wire
/// type.
#pragma once

#include <cstdint>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "xtape/error.hpp"

namespace xtape::onnx {

using Message = protozero::pbf_reader;

// The values of message.tag_and_type() for a field number.
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

/// Reads the fields of a message in their order. Each reader returns whether it has read the field at which the message
/// is. Fields without a reader are skipped.
template <class... Readers>
void read_fields(Message message, const Readers&... readers) {
  while (message.next())
    if (!(readers(message) || ...)) message.skip();
}

/// A reader that calls read(message) for the fields with this tag and type.
template <class Read>
auto field(std::uint32_t tag_and_type, const Read& read) {
  return [=](Message& message) {
    if (static_cast<std::uint32_t>(message.tag_and_type()) != tag_and_type) return false;
    read(message);
    return true;
  };
}
/// A reader that calls read(inner message).
template <class Read>
auto message_field(std::uint32_t number, const Read& read) {
  return field(text_field(number), [=](Message& message) { read(message.get_message()); });
}
/// A reader that calls take(number) for each number of a list. The list has a field for each number, whose tag and type
/// is `one`, or packed fields.
template <auto get, auto get_packed, class Take>
auto list_field(std::uint32_t number, std::uint32_t one, const Take& take) {
  return [=](Message& message) {
    const auto tag = static_cast<std::uint32_t>(message.tag_and_type());
    if (tag == one)
      take((message.*get)());
    else if (tag == text_field(number))
      for (const auto each : (message.*get_packed)()) take(each);
    else
      return false;
    return true;
  };
}

// Readers that assign a single value, or append to a list.
inline auto read_string(std::uint32_t number, std::string& to) {
  return field(text_field(number), [&to](Message& message) { to = message.get_string(); });
}
inline auto read_string(std::uint32_t number, std::vector<std::string>& to) {
  return field(text_field(number), [&to](Message& message) { to.push_back(message.get_string()); });
}
inline auto read_integer(std::uint32_t number, std::int64_t& to) {
  return field(number_field(number), [&to](Message& message) { to = message.get_int64(); });
}
template <class List>
auto read_integers(std::uint32_t number, List& to) {
  return list_field<&Message::get_int64, &Message::get_packed_int64>(number, number_field(number),
                                                                     [&to](std::int64_t each) { to.push_back(each); });
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
