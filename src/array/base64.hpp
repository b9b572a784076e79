/// Bytes as text, as RFC 4648 says (base64, with padding).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace xtape {

std::string to_base64(std::string_view bytes);
/// Nothing if the text is no base64.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace xtape
