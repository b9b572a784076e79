// k-means clustering: the sum of squared distances to the nearest centroids, and Newton's direction for the centroids.
#include "gradbench.hpp"

namespace gradbench {

Functions kmeans() {
  // Which centroid is nearest does not change with small changes, so the distances to the others need no gradient.
  const auto cost = [](const Var& points, const Var& centroids) {
    const Var distances = sum(square(centroids), 1) - 2 * matmul(points, transpose(centroids));  // [n, k], less |point|²
    return sum(square(points - take(centroids, argmin(distances))));
  };
  return {{"cost", [=](Input& in) { return cost(in.array("points"), in.array("centroids")); }},
          {"dir", [=](Input& in) {
             const Var centroids = in.array("centroids"), c = cost(in.array("points"), centroids);
             return grad(c, centroids) / hvp(c, {centroids}, {ones_like(centroids)})[0];  // the Hessian is diagonal
           }}};
}

}  // namespace gradbench
