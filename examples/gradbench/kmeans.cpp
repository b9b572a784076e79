// k-means clustering: the sum of squared distances to the nearest centroids, and Newton's direction for the centroids.
#include <algorithm>

#include "gradbench.hpp"

namespace gradbench {

namespace {
/// The index of the nearest centroid of each point. Blocks of points have distances that fit in the cache.
Var nearest(const Var& points, const Var& centroids) {
  const std::int64_t n = points.size(0), d = points.size(1);
  std::int64_t block = std::min<std::int64_t>(n, 1 + (1 << 17) / centroids.size(0));
  while (n % block != 0) --block;
  const Var most = sum(square(centroids), 1) / 2;  // p c - |c|² / 2 is largest where |p - c|² is least
  ScanOptions options;
  options.axis = 0;
  const ScanFunction search = [&](const Vars& p, const Vars&) {
    return std::pair{Vars{argmax(matmul(p[0], transpose(centroids)) - most)}, Vars{}};
  };
  return reshape(scan(search, {reshape(points, {n / block, block, d})}, {}, options).outputs[0], {n});
}
}  // namespace

Functions kmeans() {
  // Which centroid is nearest does not change with small changes, so the distances to the others need no gradient.
  const auto cost = [](const Var& points, const Var& centroids) {
    return sum(square(points - take(centroids, nearest(points, centroids))));
  };
  return {{"cost", [=](Input& in) { return cost(in.array("points"), in.array("centroids")); }},
          {"dir", [=](Input& in) {
             const Var centroids = in.array("centroids"), c = cost(in.array("points"), centroids);
             return grad(c, centroids) / hvp(c, {centroids}, {ones_like(centroids)})[0];  // the Hessian is diagonal
           }}};
}

}  // namespace gradbench
