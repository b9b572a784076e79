/* Players, training steps and optimisers. */
#include "check.h"

static void players(void) {
  xtape_tape* tape = NULL;
  OK(xtape_tape_new(NULL, &tape));
  xtape_var x, y;
  OK(xtape_input(tape, "x", XTAPE_FLOAT32, 2, SHAPE(2, 2), &x));
  OK(xtape_op(tape, "exp", &x, 1, NULL, &y, 1, NULL));
  xtape_player* player = NULL;
  OK(xtape_player_new(tape, &y, 1, NULL, 0,
                      "{\"threads\": 1, \"seed\": 3, \"precision\": \"bf16x3\", \"reference\": false}", &player));
  xtape_view view;
  FAILS(XTAPE_ERROR, "not played yet", xtape_player_view(player, 0, &view));
  float data[] = {0, 9, 1, 9};
  xtape_view feed = floats(data, 2, SHAPE(2, 2));
  feed.strides = SHAPE(2, 0); /* a column, twice */
  OK(xtape_play(player, &x, &feed, 1));
  OK(xtape_player_view(player, 0, &view));
  NEAR(((float*)view.data)[1], 1);
  NEAR(((float*)view.data)[2], exp(1));
  xtape_array* array = NULL;
  OK(xtape_player_array(player, 0, &array));
  data[2] = 2;
  OK(xtape_play(player, &x, &feed, 1));
  OK(xtape_player_set_step(player, 5));
  OK(xtape_release(player)); /* the array keeps it */
  OK(xtape_array_view(array, &view));
  NEAR(((float*)view.data)[3], exp(2));
  OK(xtape_release(array));

  OK(xtape_player_new(tape, &y, 1, NULL, 0, NULL, &player));
  FAILS(XTAPE_ERROR, "'x' (float32 (2, 2)) is not fed", xtape_play(player, NULL, NULL, 0));
  FAILS(XTAPE_ERROR, "fed twice", xtape_play(player, VARS(x, x), ((xtape_view[]){feed, feed}), 2));
  feed.dtype = XTAPE_INT32;
  FAILS(XTAPE_DTYPE_ERROR, "fed with int32", XTAPE_HERE(xtape_play(player, &x, &feed, 1)));
  CHECK(strstr(xtape_last_error(), "players_test.c, line ") != NULL);
  feed = floats(data, 1, SHAPE(4));
  FAILS(XTAPE_SHAPE_ERROR, "float32 (2, 2), fed with float32 (4,)", xtape_play(player, &x, &feed, 1));
  FAILS(XTAPE_ERROR, "only inputs", xtape_play(player, &y, &feed, 1));
  FAILS(XTAPE_ERROR, "'values' is null", xtape_play(player, &x, NULL, 1));
  FAILS(XTAPE_ERROR, "no output 1", xtape_player_view(player, 1, &view));
  FAILS(XTAPE_ERROR, "no output 1", xtape_player_array(player, 1, &array));
  FAILS(XTAPE_ERROR, "not the input of a carry", xtape_player_carried(player, x, &view));
  FAILS(XTAPE_DEFINITION_ERROR, "did you mean 'threads'",
        xtape_player_new(tape, &y, 1, NULL, 0, "{\"thread\": 1}", &player));
  FAILS(XTAPE_DEFINITION_ERROR, "threads", xtape_player_new(tape, &y, 1, NULL, 0, "{\"threads\": -1}", &player));
  FAILS(XTAPE_DEFINITION_ERROR, "float32", xtape_player_new(tape, &y, 1, NULL, 0, "{\"precision\": \"fp8\"}", &player));
  FAILS(XTAPE_MEMORY_ERROR, "", xtape_player_new(tape, &y, 1, NULL, 0, "{\"memory\": 1}", &player));
  FAILS(XTAPE_ERROR, "", xtape_player_new(tape, NULL, 0, NULL, 0, NULL, &player));
  FAILS(XTAPE_ERROR, "'carries' is null", xtape_player_new(tape, &y, 1, NULL, 1, NULL, &player));
  const char* text = NULL;
  OK(xtape_describe(player, &text));
  CHECK(has(text, "\"peak_bytes\":"));
  OK(xtape_release(player));
  FAILS(XTAPE_HANDLE_ERROR, "released", xtape_play(player, &x, &feed, 1));
  OK(xtape_release(tape));
}

static void carries(void) {
  xtape_tape* tape = NULL;
  OK(xtape_tape_new(NULL, &tape));
  xtape_var state, next;
  OK(xtape_input(tape, "state", XTAPE_FLOAT32, 1, SHAPE(2), &state));
  OK(xtape_op(tape, "add", VARS(state, xtape_number(0.5)), 2, NULL, &next, 1, NULL));
  xtape_player* player = NULL;
  OK(xtape_player_new(tape, &next, 1, VARS(state, next), 1, NULL, &player));
  xtape_view view;
  OK(xtape_player_carried(player, state, &view));
  ((float*)view.data)[1] = 10;
  for (int i = 0; i < 3; ++i) OK(xtape_play(player, NULL, NULL, 0));
  OK(xtape_player_carried(player, state, &view));
  NEAR(((float*)view.data)[0], 1.5);
  NEAR(((float*)view.data)[1], 11.5);
  const float data[] = {0, 0};
  const xtape_view feed = floats(data, 1, SHAPE(2));
  FAILS(XTAPE_ERROR, "carried", xtape_play(player, &state, &feed, 1));
  OK(xtape_release(player));
  OK(xtape_release(tape));
}

/* Views of several outputs, states and results are held at once: each keeps its own shape and elements. */
static void views_at_once(void) {
  xtape_tape* tape = NULL;
  OK(xtape_tape_new(NULL, &tape));
  xtape_var in[2], next[2];
  OK(xtape_input(tape, "a", XTAPE_FLOAT32, 1, SHAPE(3), &in[0]));
  OK(xtape_input(tape, "b", XTAPE_FLOAT32, 3, SHAPE(1, 2, 5), &in[1]));
  for (int i = 0; i < 2; ++i) OK(xtape_op(tape, "add", VARS(in[i], xtape_number(i + 1)), 2, NULL, &next[i], 1, NULL));
  xtape_player* player = NULL;
  OK(xtape_player_new(tape, next, 2, VARS(in[0], next[0], in[1], next[1]), 2, NULL, &player));
  xtape_view states[2], outputs[2];
  xtape_array* arrays[2];
  for (int i = 0; i < 2; ++i) OK(xtape_player_carried(player, in[i], &states[i]));
  CHECK(states[0].rank == 1 && states[0].shape[0] == 3 && states[0].strides[0] == 1);
  CHECK(states[1].rank == 3 && states[1].shape[1] == 2 && states[1].strides[1] == 5);
  ((float*)states[0].data)[2] = 10;
  OK(xtape_play(player, NULL, NULL, 0));
  for (int i = 0; i < 2; ++i) OK(xtape_player_view(player, (size_t)i, &outputs[i]));
  for (int i = 0; i < 2; ++i) OK(xtape_player_array(player, (size_t)i, &arrays[i]));
  CHECK(outputs[0].shape[0] == 3 && ((float*)outputs[0].data)[2] == 11);
  CHECK(outputs[1].shape[2] == 5 && ((float*)outputs[1].data)[9] == 2);
  OK(xtape_play(player, NULL, NULL, 0));
  OK(xtape_release(player)); /* the arrays keep its memory, in which they see the last play */
  OK(xtape_release(tape));
  for (int i = 0; i < 2; ++i) OK(xtape_array_view(arrays[i], &outputs[i]));
  OK(xtape_release(arrays[0]));
  CHECK(outputs[1].rank == 3 && outputs[1].shape[2] == 5 && ((float*)outputs[1].data)[9] == 4);
  OK(xtape_release(arrays[1]));
}

/* Outputs can be written, also those that are constants or parameters: the next play writes them again. */
static void outputs_to_write(void) {
  xtape_tape* tape = NULL;
  xtape_store* store = NULL;
  OK(xtape_tape_new(NULL, &tape));
  OK(xtape_store_new(&store));
  OK(xtape_store_initialise(store, "w", XTAPE_FLOAT32, 1, SHAPE(2), "1", 0));
  const float data[] = {1, 2};
  const xtape_view feed = floats(data, 1, SHAPE(2));
  xtape_var x, made[4];
  OK(xtape_input(tape, "x", XTAPE_FLOAT32, 1, SHAPE(2), &x));
  OK(xtape_constant(tape, &feed, &made[0]));
  OK(xtape_op(tape, "exp", &made[0], 1, NULL, &made[1], 1, NULL)); /* computed before the first play */
  OK(xtape_parameter(tape, store, "w", &made[2]));
  made[3] = x;
  xtape_player* player = NULL;
  OK(xtape_player_new(tape, made, 4, NULL, 0, NULL, &player));
  OK(xtape_play(player, &x, &feed, 1));
  float before[4];
  xtape_view views[4];
  for (size_t i = 0; i < 4; ++i) {
    OK(xtape_player_view(player, i, &views[i]));
    before[i] = ((float*)views[i].data)[0];
    ((float*)views[i].data)[0] = -7;
  }
  OK(xtape_play(player, &x, &feed, 1));
  for (size_t i = 0; i < 4; ++i) NEAR(((float*)views[i].data)[0], before[i]);
  xtape_array* array = NULL;
  OK(xtape_store_get(store, "w", &array));
  OK(xtape_array_view(array, &views[0]));
  CHECK(((float*)views[0].data)[0] == 1);
  OK(xtape_release(array));
  OK(xtape_release(player));
  OK(xtape_release(store));
  OK(xtape_release(tape));
}

/* loss = mean((w x - y)^2), with the weight in `store`. */
static xtape_var fit_loss(xtape_tape* tape, xtape_store* store, xtape_var inputs[2]) {
  xtape_var w, product, error, loss;
  OK(xtape_input(tape, "x", XTAPE_FLOAT32, 1, SHAPE(4), &inputs[0]));
  OK(xtape_input(tape, "y", XTAPE_FLOAT32, 1, SHAPE(4), &inputs[1]));
  OK(xtape_parameter(tape, store, "w", &w));
  OK(xtape_op(tape, "mul", VARS(w, inputs[0]), 2, NULL, &product, 1, NULL));
  OK(xtape_op(tape, "sub", VARS(product, inputs[1]), 2, NULL, &error, 1, NULL));
  OK(xtape_op(tape, "square", &error, 1, NULL, &error, 1, NULL));
  OK(xtape_op(tape, "mean", &error, 1, NULL, &loss, 1, NULL));
  return loss;
}

static float weight_of(xtape_store* store) {
  xtape_array* array = NULL;
  xtape_view view;
  OK(xtape_store_get(store, "w", &array));
  OK(xtape_array_view(array, &view));
  const float weight = *(float*)view.data;
  OK(xtape_release(array));
  return weight;
}

static void steps(void) {
  xtape_tape* tape = NULL;
  xtape_store *store = NULL, *state = NULL;
  OK(xtape_tape_new(NULL, &tape));
  OK(xtape_store_new(&store));
  OK(xtape_store_initialise(store, "w", XTAPE_FLOAT32, 0, NULL, "1", 0));
  xtape_var inputs[2];
  const xtape_var loss = fit_loss(tape, store, inputs);
  xtape_step* step = NULL;
  OK(xtape_step_new(tape, VARS(loss, inputs[0]), 2, store,
                    "{\"optimizer\": {\"kind\": \"sgd\"}, \"schedule\": 0.1, \"clip\": 100, \"threads\": 1}", &step));
  const float x[] = {1, 2, -1, 0}, y[] = {3, 6, -3, 0};
  const xtape_view feeds[] = {floats(x, 1, SHAPE(4)), floats(y, 1, SHAPE(4))};
  double first = 0, last = 0;
  OK(xtape_step_update(step, inputs, feeds, 2, &first));
  NEAR(first, (4 + 16 + 4) / 4.0);     /* (w - 3)^2 x^2 */
  NEAR(weight_of(store), 1 + 0.1 * 6); /* the gradient is 2 (w - 3) mean(x^2) = -6 */
  for (int i = 0; i < 50; ++i) OK(xtape_step_update(step, inputs, feeds, 2, &last));
  NEAR(weight_of(store), 3);
  OK(xtape_step_update(step, inputs, feeds, 2, NULL));
  xtape_view view;
  OK(xtape_step_view(step, 1, &view));
  CHECK(((float*)view.data)[1] == 2);
  xtape_view of_loss; /* held together with that of the inputs */
  OK(xtape_step_view(step, 0, &of_loss));
  CHECK(of_loss.rank == 0 && view.rank == 1 && view.shape[0] == 4 && view.strides[0] == 1);
  OK(xtape_state(step, &state));
  const char* text = NULL;
  OK(xtape_describe(state, &text));
  CHECK(has(text, "\"updates\""));
  OK(xtape_describe(step, &text));
  CHECK(has(text, "\"updates\":52"));
  OK(xtape_release(state));

  const float nan[] = {NAN, 0, 0, 0};
  const xtape_view bad[] = {floats(nan, 1, SHAPE(4)), feeds[1]};
  FAILS(XTAPE_TRAINING_ERROR, "the loss is", xtape_step_update(step, inputs, bad, 2, NULL));
  NEAR(weight_of(store), 3);
  FAILS(XTAPE_ERROR, "not fed", xtape_step_update(step, inputs, feeds, 1, NULL));
  FAILS(XTAPE_ERROR, "", xtape_step_view(step, 2, &view));
  OK(xtape_release(step));

  const xtape_var* one = &loss;
  FAILS(XTAPE_DEFINITION_ERROR, "adan",
        xtape_step_new(tape, one, 1, store, "{\"optimizer\": {\"kind\": \"adan\"}}", &step));
  FAILS(XTAPE_DEFINITION_ERROR, "did you mean", xtape_step_new(tape, one, 1, store, "{\"optimiser\": {}}", &step));
  FAILS(XTAPE_DEFINITION_ERROR, "clip", xtape_step_new(tape, one, 1, store, "{\"clip\": -1}", &step));
  FAILS(XTAPE_DEFINITION_ERROR, "frozen_until",
        xtape_step_new(tape, one, 1, store,
                       "{\"optimizer\": {\"kind\": \"sgd\", \"groups\": {\"weights\": \"w\", \"frozen_until\": 3}}}",
                       &step));
  xtape_var unrelated;
  OK(xtape_op(tape, "sum", inputs, 1, NULL, &unrelated, 1, NULL));
  FAILS(XTAPE_ERROR, "depends on none of the weights", xtape_step_new(tape, &unrelated, 1, store, NULL, &step));
  FAILS(XTAPE_ERROR, "no result", xtape_step_new(tape, NULL, 0, store, NULL, &step));
  FAILS(XTAPE_HANDLE_ERROR, "'weights'", xtape_step_new(tape, one, 1, NULL, NULL, &step));
  OK(xtape_step_new(tape, one, 1, store,
                    "{\"schedule\": {\"kind\": \"cosine\", \"rate\": 0.01, \"steps\": 9}, \"optimizer\": {\"kind\": "
                    "\"adam\", \"groups\": [{\"weights\": \"w\", \"rate\": 0.5}]}}",
                    &step));
  OK(xtape_step_update(step, inputs, feeds, 2, NULL));
  OK(xtape_describe(step, &text));
  CHECK(has(text, "\"updates\":1,\"rate\":0.0"));
  OK(xtape_release(step));
  OK(xtape_release(store));
  OK(xtape_release(tape));
}

static void optimizers(void) {
  xtape_store *store = NULL, *state = NULL;
  OK(xtape_store_new(&store));
  OK(xtape_store_initialise(store, "v", XTAPE_FLOAT32, 1, SHAPE(2), "5", 0));
  OK(xtape_store_initialise(store, "w", XTAPE_FLOAT32, 0, NULL, "1", 0));
  xtape_optimizer* optimizer = NULL;
  OK(xtape_optimizer_new(store, "{\"kind\": \"sgd\", \"momentum\": 0.5}", &optimizer));
  const float gradient = 2, infinite = INFINITY;
  xtape_view gradients[] = {{NULL, XTAPE_FLOAT32, 0, NULL, NULL}, floats(&gradient, 0, NULL)};
  double norm = 0;
  OK(xtape_optimizer_update(optimizer, gradients, 2, 0.1, 0, &norm));
  NEAR(norm, 2);
  NEAR(weight_of(store), 0.8);
  OK(xtape_optimizer_update(optimizer, gradients, 2, 0.1, 1, NULL)); /* clipped to 1; velocity 0.5 * 2 + 1 */
  NEAR(weight_of(store), 0.6);
  OK(xtape_state(optimizer, &state));
  const char* text = NULL;
  OK(xtape_describe(state, &text));
  CHECK(has(text, "velocity.w"));
  gradients[1] = floats(&infinite, 0, NULL);
  FAILS(XTAPE_TRAINING_ERROR, "not finite", xtape_optimizer_update(optimizer, gradients, 2, 0.1, 0, NULL));
  NEAR(weight_of(store), 0.6);
  FAILS(XTAPE_ERROR, "", xtape_optimizer_update(optimizer, gradients, 1, 0.1, 0, NULL));
  FAILS(XTAPE_ERROR, "'gradients' is null", xtape_optimizer_update(optimizer, NULL, 2, 0.1, 0, NULL));
  gradients[1] = floats(&gradient, 1, SHAPE(1));
  FAILS(XTAPE_SHAPE_ERROR, "", xtape_optimizer_update(optimizer, gradients, 2, 0.1, 0, NULL));
  OK(xtape_describe(optimizer, &text));
  CHECK(has(text, "\"updates\":2"));
  FAILS(XTAPE_DEFINITION_ERROR, "kind", xtape_optimizer_new(store, NULL, &optimizer));
  FAILS(XTAPE_HANDLE_ERROR, "a step or an optimiser", xtape_state(store, &state));
  OK(xtape_release(state));
  OK(xtape_release(optimizer));
  OK(xtape_release(store));
}

void players_tests(void) {
  players();
  carries();
  views_at_once();
  outputs_to_write();
  steps();
  optimizers();
}
