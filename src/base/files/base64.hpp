/// Bytes as text, as defined in RFC 4648 (base64 with padding).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace xtape {

std::string to_base64(std::string_view bytes);
/// Returns nothing if the text is not base64.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace xtape
