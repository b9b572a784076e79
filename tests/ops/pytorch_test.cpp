// The cases of tests/golden/data/many: at least 20 of each op, in the manner of PyTorch's OpInfo.
#include <doctest/doctest.h>

#include <string>

#include "golden.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"

using namespace xtape;

TEST_CASE("ops have PyTorch's values, first and second gradients") {
  for (const char* family : {"elementwise", "reductions", "shapes", "products", "losses", "windows"})
    check_golden(std::string("many/") + family + ".json", "", 1e-10, 0);
}

TEST_CASE("each op has 20 cases of PyTorch, or a reason why not") {
  const std::string random = "draws are our own", gradient = "recorded by the gradients, whose cases play it",
                    ours = "PyTorch has no such op", signs = "signs of vectors differ between builds of LAPACK";
  const std::map<std::string, std::string> reasons{{"bernoulli", random},
                                                   {"beta", random},
                                                   {"categorical", random},
                                                   {"choice", random},
                                                   {"dropout", random},
                                                   {"exponential", random},
                                                   {"gamma", random},
                                                   {"laplace", random},
                                                   {"multinomial", random},
                                                   {"multivariate_normal", random},
                                                   {"normal", random},
                                                   {"permutation", random},
                                                   {"poisson", random},
                                                   {"randint", random},
                                                   {"randn", random},
                                                   {"randperm", random},
                                                   {"truncated_normal", random},
                                                   {"uniform", random},
                                                   {"attention_grad", gradient},
                                                   {"batch_norm_grad", gradient},
                                                   {"cross_entropy_grad", gradient},
                                                   {"det_grad", gradient},
                                                   {"det_grad_grad", gradient},
                                                   {"einsum_add", gradient},
                                                   {"gammaincinv", gradient},
                                                   {"gelu_grad", gradient},
                                                   {"index_reduce", gradient},
                                                   {"layer_norm_grad", gradient},
                                                   {"log_softmax_grad", gradient},
                                                   {"lu_solve", gradient},
                                                   {"poisson_quantile", gradient},
                                                   {"product_cross_entropy", gradient},
                                                   {"rms_norm_grad", gradient},
                                                   {"scatter_elements", gradient},
                                                   {"softmax_grad", gradient},
                                                   {"eigh", signs},
                                                   {"svd", signs},
                                                   {"cache", ours},
                                                   {"causal_mask", ours},
                                                   {"checked_indices", ours},
                                                   {"checked_weights", ours},
                                                   {"crf_decode", ours},
                                                   {"crf_log_partition", ours},
                                                   {"crf_loss", ours},
                                                   {"crf_score", ours},
                                                   {"dequantize", ours},
                                                   {"positions", ours},
                                                   {"rearrange", ours},
                                                   {"root_of_squares", ours},
                                                   {"shift_right", ours},
                                                   {"stop_gradient", ours},
                                                   {"watch", ours}};
  const std::map<std::string, int> counts = count_golden();
  for (const auto& entry : builtin_ops().ops()) {
    const std::string& name = entry.first;
    INFO(name);
    const auto found = counts.find(name);
    const bool enough = found != counts.end() && found->second >= 20;
    CHECK(enough != (reasons.count(name) == 1));
  }
}
