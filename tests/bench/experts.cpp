// A step of a mixture of 16 experts, 4 for each token: value and gradients. experts.py computes the same with PyTorch.
//
// usage: experts [TOKENS] [WIDTH] [EXPERT_WIDTH] [THREADS]
#include <cstdio>
#include <cstdlib>

#include "bench.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops.hpp"
#include "xtape/ops/activations.hpp"
#include "xtape/ops/indexing.hpp"
#include "xtape/ops/order.hpp"
#include "xtape/player.hpp"

using namespace xtape;

int main(int argc, char** argv) {
  const auto number = [&](int i, std::int64_t otherwise) { return argc > i ? std::atoll(argv[i]) : otherwise; };
  const std::int64_t tokens = number(1, 512), width = number(2, 512), hidden = number(3, 1024), experts = 16, used = 4;
  PlayerOptions options;
  options.threads = static_cast<int>(number(4, 2));
  for (const bool dense : {false, true}) {
    Tape tape;
    const Var x = tape.input("x", {tokens, width});
    const Var router = tape.parameter("router", bench::waves({width, experts}, 0.71)),
              gate = tape.parameter("gate", bench::waves({experts, width, hidden}, 1.71)),
              up = tape.parameter("up", bench::waves({experts, width, hidden}, 2.71)),
              down = tape.parameter("down", bench::waves({experts, hidden, width}, 3.71));
    const auto best = top_k(softmax(matmul(x, router)), used);
    const Var share = best.first / sum(best.first, {-1}, true), chosen = best.second;  // [t, used]
    Var y;
    if (dense) {
      const Var weights = sum(one_hot(chosen, experts, Dtype::float32) * expand_dims(share, -1), {1});  // [t, e]
      const Var h = silu(einsum("td,edh->teh", x, gate)) * einsum("td,edh->teh", x, up);
      y = einsum("teh,ehd->td", h * expand_dims(weights, -1), down);
    } else {
      const Var ids = reshape(chosen, {tokens * used}), order = argsort(ids);
      const Var sizes = bincount(ids, experts), rows = floor_divide(order, used);
      const Var own = take(x, rows);  // [t * used, d]
      const Var h = silu(ragged_dot(own, gate, sizes)) * ragged_dot(own, up, sizes);
      const Var scaled = h * expand_dims(take(reshape(share, {tokens * used}), order), -1);
      y = index_add(zeros(tape, {tokens, width}, Dtype::float32), 0, rows, ragged_dot(scaled, down, sizes));
    }
    const Var loss = sum(square(y));
    Vars outputs{loss};
    for (const Var& gradient : grad(loss, {x, router, gate, up, down})) outputs.push_back(gradient);
    Player player(tape, outputs, options);
    Array fed = bench::waves({tokens, width}, 0.37);
    for (std::int64_t i = 0; i < fed.count(); ++i) fed.as<float>()[i] *= 100;
    const double least = bench::best_of(2, [&] { player.play({{x, fed}}); });
    std::printf("xtape, %s: %.1f ms; loss %.6f, gradients %.6f %.6f\n", dense ? "all experts" : "chosen experts", least,
                static_cast<double>(player.view(loss).as<float>()[0]),
                static_cast<double>(player.view(outputs[1]).as<float>()[7]),
                static_cast<double>(player.view(outputs[3]).as<float>()[7]));
  }
}
