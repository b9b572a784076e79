/// Words as BLEU counts them.
#pragma once

#include <string>
#include <vector>

namespace xtape {

/// The words and marks of a line by the rules of NIST's mteval-v13a, as sacreBLEU applies them. Throws Error where it
/// is not UTF-8.
std::vector<std::string> words_13a(const std::string& line);

}  // namespace xtape
