/// The special tokens. If a vocabulary has them, it begins with them, in this order and with these names.
#pragma once

#include <cstdint>

namespace xtape {

inline constexpr std::int32_t pad_token = 0;
inline constexpr std::int32_t unknown_token = 1;
inline constexpr std::int32_t start_token = 2;
inline constexpr std::int32_t end_token = 3;
inline constexpr std::int32_t special_token_count = 4;

inline constexpr const char* pad_name = "<pad>";
inline constexpr const char* unknown_name = "<unk>";
inline constexpr const char* start_name = "<s>";
inline constexpr const char* end_name = "</s>";

}  // namespace xtape
