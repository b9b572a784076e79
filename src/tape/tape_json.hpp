/// Tapes as JSON text: the file tape.json of a saved tape. docs/reference/tapes.md describes the format.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json/json_text.hpp"
#include "xtape/op/op.hpp"
#include "xtape/safetensors.hpp"

namespace xtape {

inline constexpr const char* tape_format = "xtape tape";
inline constexpr int tape_version = 1;
inline constexpr const char* tape_file = "tape.json";
inline constexpr const char* arrays_file = "arrays.safetensors";
/// The maximum nesting depth of bodies. It keeps the JSON text within the nesting limit of its reader.
inline constexpr int deepest_body = 64;

// Values. Writing and reading lose no bit.

/// Attributes are written as true, 3, 3.0, "text", [1, 2], {"dtype": "float32"} or {"sizes": {"h": 2}}. A number that
/// is not finite is written as json_of(double) writes it.
Json json_of(const Attribute& value);
Attribute attribute_of(const JsonNode& node);
Dtype dtype_of(const JsonNode& node);  ///< The dtype with this name.
/// Writes a finite number with a point or exponent, an infinity as {"number": "inf"} or {"number": "-inf"}, and a NaN
/// by its bits, such as {"bits": "7ff8000000000000"}.
Json json_of(double number);
/// Convert the element of an array of rank 0.
Json json_of_element(const Array& array);
Array element_of(const JsonNode& node, Dtype dtype);
/// 64 bits as 16 hexadecimal digits.
std::string hexadecimal(std::uint64_t bits);
std::uint64_t bits_of(const JsonNode& node, std::size_t digits = 16);
/// Returns nothing if the text does not consist of `digits` lower-case hexadecimal digits.
std::optional<std::uint64_t> bits_of(const std::string& text, std::size_t digits = 16);

// Tapes.

/// The text of tape.json, and the arrays that the text names. Each array occurs once.
struct TapeText {
  std::string text;
  std::vector<std::pair<std::string, Array>> arrays;
};
/// Writes a tape as text. Throws as Tape::save does.
TapeText text_of(const Tape& tape, const NamedVars& outputs);
/// Writes the files of a saved tape into a folder. Throws FileError.
void write_saved_tape(const std::string& folder, const TapeText& written);
/// Reads a tape from its text. `arrays` is the file of arrays beside the text. Throws as Tape::load does.
SavedTape read_tape(const JsonNode& root, const ArrayFile& arrays, const Store& weights, const OpTable* ops);

}  // namespace xtape
