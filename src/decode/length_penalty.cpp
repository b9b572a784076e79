#include <cmath>

#include "xtape/decode.hpp"

namespace xtape {

const char* name_of(LengthPenalty penalty) {
  return penalty == LengthPenalty::none ? "none" : penalty == LengthPenalty::wu ? "wu" : "power";
}

LengthPenalty length_penalty_named(const std::string& name) {
  for (const LengthPenalty penalty : {LengthPenalty::none, LengthPenalty::wu, LengthPenalty::power})
    if (name == name_of(penalty)) return penalty;
  throw Error("unknown length penalty '" + name + "': use none, wu or power");
}

double penalty_of(LengthPenalty penalty, double alpha, std::int64_t length) {
  const auto tokens = static_cast<double>(length);
  switch (penalty) {
    case LengthPenalty::wu:
      return std::pow((5 + tokens) / 6, alpha);
    case LengthPenalty::power:
      return std::pow(tokens, alpha);
    default:
      return 1;
  }
}

}  // namespace xtape
