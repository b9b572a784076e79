// Misuse of parameters, initialisers and layers.
#include "misuse.hpp"

using namespace xtape;

namespace misuse::layers {
namespace {
struct World {
  Tape tape, other;
  Parameters p{tape, 1};
  Var x, image, foreign;
  Array weights{Dtype::float32, {3}};

  World() {
    x = tape.input("x", {2, 4, 6});
    image = tape.input("image", {2, 4, 6, 6});
    foreign = other.input("z", {2, 4, 6});
  }
};

std::vector<Row> rows_of_parameters(World& w) {
  return {
      {"Parameters::scope", "empty", "needs a name", [&w] { w.p.scope(""); }},
      {"Parameters::operator()", "empty", "needs a name", [&w] { w.p("", {1}, 0); }},
      {"Parameters::operator()", "no array", "a view without memory", [&w] { w.p("w", ArrayView()); }},
      {"Parameters::operator()", "negative size", "must not be negative", [&w] { w.p("w", {-1}, 0); }},
      {"Parameters::operator()", "integers", "must be of floats", [&w] { w.p("w", Array(Dtype::int64, {2})); }},
      {"Parameters::operator()", "no seed", "the store has no parameter 'w'",
       [&w] { Parameters(w.tape, w.p.store())("w", {1}, 0); }},
      {"Parameters::operator()", "an empty array in the store", "the array is empty",
       [&w] {
         Store store;
         store.add("w", Array());
         Parameters(w.tape, store)("w", {}, 0);
       }},
      {"Parameters::vars", "removed from the store", "there is no array 'w'",
       [&w] {
         Store store;
         const Parameters p(w.tape, store, 1);
         p("w", {1}, 0);
         store = Store();
         p.vars();
       }},
      {"Parameters::list", "removed from the store", "there is no array 'w'",
       [&w] {
         Store store;
         const Parameters p(w.tape, store, 1);
         p("w", {1}, 0);
         store = Store();
         p.list();
       }},
      {"Parameters::count", "removed from the store", "there is no array 'w'",
       [&w] {
         Store store;
         const Parameters p(w.tape, store, 1);
         p("w", {1}, 0);
         store = Store();
         p.count();
       }},
      {"Parameters::statistic", "empty", "needs a name", [&w] { w.p.statistic("", {1}, 0); }},
      {"Parameters::record_update", "unknown", "there is no statistic 's'", [&w] { w.p.record_update("s", w.x); }},
      {"Parameters::record_update", "empty", "empty",
       [&w] {
         w.p.statistic("s", {1}, 0);
         w.p.record_update("s", Var());
       }},
      {"Parameters::record_update", "foreign", "another tape",
       [&w] {
         w.p.statistic("s", {2, 4, 6}, 0);
         w.p.record_update("s", w.foreign);
       }},
      {"Parameters::update", "not an output", "not an output of the player",
       [&w] {
         w.p.record_update("s", w.p.statistic("s", {1}, 0) + 1);
         const Var y = sum(w.p.statistic("t", {1}, 0));
         Player player(w.tape, {y});
         player.play();
         w.p.update(player);
       }},
      {"initialise", "empty", "",
       [] {
         Array none(Dtype::float32, {0});
         initialise(none, init::normal(), 1, "w");
       }},
      {"initialise", "no array", "the array is empty",
       [] {
         Array none;
         initialise(none, init::zeros(), 1, "w");
       }},
      {"initialise", "integers", "float32 or float64, not int32",
       [] {
         Array integers(Dtype::int32, {2});
         initialise(integers, init::zeros(), 1, "w");
       }},
      {"from", "no array", "a view without memory", [] { init::from(ArrayView()); }},
      {"from", "another shape", "shape",
       [&w] { initialise(w.weights, init::from(Array(Dtype::float32, {2})), 1, "w"); }},
  };
}

std::vector<Row> rows_of_layers(World& w) {
  const std::string foreign = "different tapes";
  return {
      {"linear", "foreign", foreign, [&w] { nn::linear(w.p, w.foreign, 3); }},
      {"linear", "empty", "empty", [&w] { nn::linear(w.p, Var(), 3); }},
      {"dense", "foreign", foreign, [&w] { nn::dense(w.p, w.foreign, 3); }},
      {"embedding", "floats", "integer", [&w] { nn::embedding(w.p, w.x, 3, 4); }},
      {"feed_forward", "no activation", "the activation is empty", [&w] { nn::feed_forward(w.p, w.x, 3, 0, {}); }},
      {"conv1d", "no size", "must not be negative", [&w] { nn::conv1d(w.p, w.x, 3, -1); }},
      {"conv2d", "two axes missing", "takes [b, channels, h, w]", [&w] { nn::conv2d(w.p, w.x, 3, 3); }},
      {"conv2d", "no groups", "groups must divide", [&w] { nn::conv2d(w.p, w.image, 3, 3, 1, 0, 1, 0); }},
      {"conv_transpose1d", "an axis too many", "takes [b, channels, n]",
       [&w] { nn::conv_transpose1d(w.p, w.image, 3, 3); }},
      {"conv_transpose2d", "no size", "the size of a kernel is one number or 2, got 0",
       [&w] { nn::conv_transpose2d(w.p, w.image, 3, PerAxis()); }},
      {"layer_norm", "foreign", foreign, [&w] { nn::layer_norm(w.p, w.foreign); }},
      {"rms_norm", "foreign", foreign, [&w] { nn::rms_norm(w.p, w.foreign); }},
      {"group_norm", "no groups", "groups", [&w] { nn::group_norm(w.p, w.x, 0); }},
      {"batch_norm", "a scalar", "axis", [&w] { nn::batch_norm(w.p, w.tape.input("scalar", {})); }},
      {"rnn", "foreign", foreign, [&w] { nn::rnn(w.p, w.foreign, 3); }},
      {"lstm", "no units", "at least one unit", [&w] { nn::lstm(w.p, w.x, 0); }},
      {"gru", "an axis too many", "takes [b, t, in]", [&w] { nn::gru(w.p, w.image, 3); }},
      {"multi_head_attention", "no heads", "the heads must divide", [&w] { nn::multi_head_attention(w.p, w.x, 0); }},
      {"multi_head_attention", "empty", "empty", [&w] { nn::multi_head_attention(w.p, w.x, Var(), w.x, 2); }},
      {"sinusoidal_positions", "an odd width", "even width", [&w] { nn::sinusoidal_positions(w.x, 3); }},
      {"transformer_encoder_layer", "foreign", foreign,
       [&w] {
         nn::transformer_encoder_layer(w.p, w.tape.input("wide", {1, 2, 8}), w.foreign);
       }},
      {"transformer_decoder_layer", "empty", "empty",
       [&w] {
         nn::transformer_decoder_layer(w.p, w.tape.input("wide", {1, 2, 8}), Var(), Var());
       }},
  };
}

std::vector<Row> rows_of_all(World& w) {
  std::vector<Row> rows = rows_of_parameters(w);
  for (Row& row : rows_of_layers(w)) rows.push_back(std::move(row));
  return rows;
}
}  // namespace

TEST_CASE("parameters and layers refuse what they cannot do") {
  check_rows<World>(rows_of_parameters);
}
TEST_CASE("layers refuse what they cannot do") {
  check_rows<World>(rows_of_layers);
}
TEST_CASE("every function of parameters and layers is in the table, or takes any value") {
  check_complete<World>(rows_of_all, {"init.hpp", "parameters.hpp", "nn.hpp"},
                        {"zeros",
                         "ones",
                         "constant",
                         "normal",
                         "truncated_normal",
                         "uniform",
                         "glorot_uniform",
                         "glorot_normal",
                         "he_uniform",
                         "he_normal",
                         "lecun_uniform",
                         "lecun_normal",
                         "orthogonal",
                         "identity",
                         "xavier_uniform",
                         "xavier_normal",
                         "kaiming_uniform",
                         "kaiming_normal",
                         "eye",
                         "Parameters::prefix",
                         "Parameters::tape",
                         "Parameters::store",
                         "Parameters::updates"},
                        30);
}
}  // namespace misuse::layers
