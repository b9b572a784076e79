/// The tokenization "13a" of BLEU.
#pragma once

#include <string>
#include <vector>

namespace xtape {

/// Splits a line into words and punctuation by the rules of NIST's mteval-v13a, as sacreBLEU implements them. Throws
/// Error if the line is not UTF-8.
std::vector<std::string> words_13a(const std::string& line);

}  // namespace xtape
