// Classifies the rows of a table in a CSV file by a network of one hidden layer.
// usage: mlp_csv examples/data/iris.csv
// The table: R. A. Fisher, 1936, Iris (UCI Machine Learning Repository, doi.org/10.24432/C56C76, licence CC BY 4.0).
#include <iostream>
#include <xtape/xtape.hpp>
using namespace xtape;

int main(int argc, char** argv) try {
  if (argc != 2) throw Error("usage: mlp_csv examples/data/iris.csv");
  CsvOptions options;
  options.labels = {"species"};
  const CsvTable iris = read_csv(argv[1], options);
  const auto [x, held_x, y, held_y] = split_rows(0.8, 1, iris.matrix_without({"species"}), iris.at("species"));

  const auto network = [](const Parameters& p, Var rows) {
    rows = (rows - p.statistic("mean")) / p.statistic("deviation");
    return nn::linear(p / "out", relu(nn::linear(p / "hidden", rows, 32)), 3);
  };
  Tape evaluation;
  Parameters p(evaluation, 1);
  const Var all_rows = evaluation.constant(x);
  p.statistic("mean", evaluate(mean(all_rows, 0)));
  p.statistic("deviation", evaluate(sqrt(variance(all_rows, 0))));
  const Var accuracy = mean(argmax(network(p, evaluation.constant(held_x))) == evaluation.constant(held_y));

  const auto loss_of = [&](Var rows, Var labels) { return cross_entropy(network({rows.tape(), p}, rows), labels); };
  Step step(loss_of, p, AdamW{0.01});
  auto data = batches(32, 1, x, y);
  for (int epoch = 0; epoch < 30; ++epoch) {
    double loss = 0;
    for (auto [rows, labels] : data) loss = step({rows, labels});
    std::cout << "epoch " << epoch << ": loss " << loss << '\n';
  }
  std::cout << "held-out accuracy " << evaluate(accuracy)() << '\n';
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
