// k-means clustering: the sum of squared distances to the nearest centroids, and Newton's direction for the centroids.
#include "gradbench.hpp"

namespace gradbench {

namespace {
/// The index of the nearest centroid of each point.
Var nearest(const Var& points, const Var& centroids) {
  const Var most = sum(square(centroids), 1) / 2;  // p c - |c|² / 2 is largest where |p - c|² is least
  const auto of_block = [&](const Vars& p) { return Vars{argmax(matmul(p[0], transpose(centroids)) - most)}; };
  return in_blocks(of_block, {points}, 1 + (1 << 15) / centroids.size(0))[0];
}
}  // namespace

Functions kmeans() {
  // Small changes do not change which centroid is nearest, so the distances to the other centroids need no gradient.
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
