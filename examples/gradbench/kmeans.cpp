// k-means clustering: the sum of squared distances to the nearest centroids, and Newton's direction for the centroids.
#include "gradbench.hpp"

namespace gradbench {

Functions kmeans() {
  // Which centroid is nearest does not change with small changes, so the distances to the others need no gradient.
  const auto cost = [](const Var& points, const Var& centroids) {
    const Var nearness = matmul(points, transpose(centroids)) - sum(square(centroids), 1) / 2;  // [n, k]: |p|² - |p - c|², halved
    return sum(square(points - take(centroids, argmax(nearness))));
  };
  return {{"cost", [=](Input& in) { return cost(in.array("points"), in.array("centroids")); }},
          {"dir", [=](Input& in) {
             const Var centroids = in.array("centroids"), c = cost(in.array("points"), centroids);
             return grad(c, centroids) / hvp(c, {centroids}, {ones_like(centroids)})[0];  // the Hessian is diagonal
           }}};
}

}  // namespace gradbench
