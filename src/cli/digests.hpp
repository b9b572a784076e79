/// Files of digests: the hashes of the values of a play, and how it was played.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "xtape/player.hpp"

namespace xtape::cli {

struct DigestFile {
  std::vector<std::pair<std::string, std::string>> play;  ///< How it was played: "instruction set", "avx512" …
  std::vector<Digest> digests;
};
/// Writes the digests of the player's last play. Throws FileError.
void save_digests(const std::string& path, const Player& player,
                  const std::vector<std::pair<std::string, std::string>>& play);
/// Throws FileError, with file and line, if the file is not one of digests.
DigestFile load_digests(const std::string& path);

}  // namespace xtape::cli
