// The log posterior of a mixture of k Gaussians in d dimensions, with a Wishart prior.
#include <cmath>

#include "gradbench.hpp"

namespace gradbench {

Functions gmm() {
  const auto objective = [](Input& in, const NamedVars& by) {
    const std::int64_t d = in.number("d"), k = in.number("k"), n = in.number("n"), m = in.number("m");
    const double gamma = in.fields.at("gamma"), freedom = static_cast<double>(d + m + 1);
    const Var x = in.array("x"), q_sum = sum(by.at("q"), 1);  // [n, d], [k]

    // Lower triangular factors of the precision matrices. `l` contains their columns, one after the other.
    std::vector<std::int32_t> places(static_cast<std::size_t>(d * d), static_cast<std::int32_t>(d * (d - 1) / 2));
    for (std::int32_t column = 0, next = 0; column < d; ++column)
      for (std::int32_t row = column + 1; row < d; ++row) places[static_cast<std::size_t>(row * d + column)] = next++;
    const Var below = take(concat({by.at("l"), zeros(in.tape, {k, 1})}, 1), in.tape.constant(places), 1);
    const Var factors = reshape(below, {k, d, d}) + diag_embed(exp(by.at("q")));  // [k, d, d]

    const Var centred = einsum("nj,kij->nki", x, factors) - einsum("kj,kij->ki", by.at("mu"), factors);  // [n, k, d]
    const Var likelihood = sum(logsumexp(by.at("alpha") + q_sum - 0.5 * sum(square(centred), 2), 1));
    const Var prior = sum(m * q_sum) - 0.5 * gamma * gamma * sum(square(factors));
    double constant = -0.5 * n * d * std::log(2 * M_PI) + k * freedom * d * std::log(gamma / std::sqrt(2)) -
                      0.25 * k * d * (d - 1) * std::log(M_PI);
    for (int j = 0; j < d; ++j) constant -= k * std::lgamma(0.5 * (freedom - j));
    return likelihood - n * logsumexp(by.at("alpha")) + prior + constant;
  };
  const auto independent = [](Input& in) {
    NamedVars vars;
    for (const char* name : {"alpha", "mu", "q", "l"}) vars.add(name, in.array(name));
    return vars;
  };
  return {{"objective", [=](Input& in) { return objective(in, independent(in)); }},
          {"jacobian", [=](Input& in) {
             const NamedVars vars = independent(in);
             return grad(objective(in, vars), vars);
           }}};
}

}  // namespace gradbench
