#include <algorithm>

#include "next_token.hpp"
#include "xtape/decode.hpp"

namespace xtape {

namespace {
/// Lengths are powers of two up to the context, so that few players are planned.
std::int64_t bucket(std::int64_t length, std::int64_t context) {
  std::int64_t size = 16;
  while (size < length) size *= 2;
  return std::min(size, context);
}
}  // namespace

Tokens generate(Model& model, const Tokens& prompt, const GenerateOptions& options) {
  if (prompt.empty()) throw Error("a prompt of no tokens cannot be continued");
  if (options.context < 1) throw Error("the context must be at least one token");
  Tokens all = prompt;
  std::optional<decode::NextToken> next;
  std::int64_t columns = 0;
  std::vector<double> logits;
  for (std::int64_t made = 0; made < options.tokens; ++made) {
    const std::int64_t length = std::min(static_cast<std::int64_t>(all.size()), options.context);
    if (bucket(length, options.context) != columns) {
      columns = bucket(length, options.context);
      next.emplace(model, 1, columns);
    }
    // What stands behind the last token does not reach its logits: the model looks back only.
    std::copy(all.end() - length, all.end(), next->row(0));
    std::fill(next->row(0) + length, next->row(0) + columns, 0);
    next->play();
    next->logits(0, length - 1, logits);
    all.push_back(sample(logits, options.sampling, static_cast<std::uint64_t>(made)));
    if ((options.each && options.each(all.back())) || all.back() == options.end_token) break;
  }
  return Tokens(all.begin() + static_cast<std::ptrdiff_t>(prompt.size()), all.end());
}

}  // namespace xtape
