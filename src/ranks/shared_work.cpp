#include "ranks/shared_work.hpp"

namespace xtape::ranks {

std::vector<std::string> SharedWork::gather(const std::vector<std::string>& here) const {
  if (group_.size() == 1) return here;
  PackedBytes own;
  for (const std::string& text : here) own.add_text(text);
  std::vector<PackedBytes> of_rank;
  for (std::string& bytes : group_.all_gather(own.bytes())) of_rank.emplace_back(std::move(bytes));
  std::vector<std::string> all;
  for (std::size_t i = 0; i < items_; ++i) all.push_back(of_rank[rank_of(i)].take_text());
  return all;
}

}  // namespace xtape::ranks
