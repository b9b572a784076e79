/// Tapes as JSON text: the file tape.json of a saved tape. docs/tapes.md describes the format.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "json_text.hpp"
#include "xtape/op/op.hpp"
#include "xtape/safetensors.hpp"

namespace xtape {

inline constexpr const char* tape_format = "xtape tape";
inline constexpr int tape_version = 1;
inline constexpr const char* tape_file = "tape.json";
inline constexpr const char* arrays_file = "arrays.safetensors";
/// The most bodies inside one another, so that the JSON text is not nested deeper than its reader allows.
inline constexpr int deepest_body = 64;

// Values. Writing and reading keep every bit.

/// true, 3, 3.0, "text", [1, 2], {"dtype": "float32"}, {"sizes": {"h": 2}}; a number that is not finite as of `json_of`
/// a double.
Json json_of(const Attribute& value);
Attribute attribute_of(const JsonNode& node);
Dtype dtype_of(const JsonNode& node);  ///< The dtype with this name.
/// A number with a point or exponent; {"number": "inf"} or "-inf"; a NaN by its bits, {"bits": "7ff8000000000000"}.
Json json_of(double number);
/// The element of an array of rank 0.
Json json_of_element(const Array& array);
Array element_of(const JsonNode& node, Dtype dtype);
/// 64 bits as 16 hexadecimal digits.
std::string hexadecimal(std::uint64_t bits);
std::uint64_t bits_of(const JsonNode& node, std::size_t digits = 16);
std::optional<std::uint64_t> bits_of(const std::string& text, std::size_t digits = 16);  ///< Nothing if it is not that.

// Tapes.

/// The text of tape.json, and the arrays that it names, each once. Throws as Tape::save.
struct TapeText {
  std::string text;
  std::vector<std::pair<std::string, Array>> arrays;
};
TapeText text_of(const Tape& tape, const NamedVars& outputs);
/// Writes the files of a saved tape into a folder. Throws FileError.
void write_saved_tape(const std::string& folder, const TapeText& written);
/// The tape of a text. `arrays` are those of the file beside it. Throws as Tape::load.
SavedTape read_tape(const JsonNode& root, const ArrayFile& arrays, const Store& weights, const OpTable* ops);

}  // namespace xtape
