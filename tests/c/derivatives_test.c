/* Gradients, tangents, Jacobians, Hessians, batches and loops. */
#include "check.h"

/* Plays outputs for x = (1, 2, 3) and copies the elements of all, which are float32. */
static void play(xtape_tape* tape, const xtape_var* outputs, size_t count, xtape_var x, float* elements) {
  xtape_player* player = NULL;
  const float data[] = {1, 2, 3};
  const xtape_view feed = floats(data, 1, SHAPE(3));
  OK(xtape_player_new(tape, outputs, count, NULL, 0, NULL, &player));
  OK(xtape_play(player, &x, &feed, 1));
  for (size_t i = 0; i < count; ++i) {
    xtape_view view;
    if (!OK(xtape_player_view(player, i, &view))) return;
    int64_t size = 1;
    for (int32_t axis = 0; axis < view.rank; ++axis) size *= view.shape[axis];
    memcpy(elements, view.data, (size_t)size * sizeof(float));
    elements += size;
  }
  OK(xtape_release(player));
}

static xtape_tape* cubes(xtape_var* x, xtape_var* cube, xtape_var* total) {
  xtape_tape* tape = NULL;
  OK(xtape_tape_new(NULL, &tape));
  OK(xtape_input(tape, "x", XTAPE_FLOAT32, 1, SHAPE(3), x));
  OK(xtape_op(tape, "pow", VARS(*x, xtape_integer(3)), 2, NULL, cube, 1, NULL));
  OK(xtape_op(tape, "sum", cube, 1, NULL, total, 1, NULL));
  return tape;
}

static void derivatives(void) {
  xtape_var x, cube, total, made[3], unrelated;
  xtape_tape* tape = cubes(&x, &cube, &total);
  float got[16];
  OK(xtape_grad(tape, &total, 1, &x, 1, NULL, NULL, made));
  play(tape, made, 1, x, got);
  NEAR(got[2], 27);
  OK(xtape_grad(tape, &cube, 1, &x, 1, &x, NULL, made)); /* x is the cotangent */
  play(tape, made, 1, x, got);
  NEAR(got[2], 81);
  OK(xtape_grad(tape, &cube, 1, &x, 1, NULL, "{\"sum_outputs\": true}", made));
  OK(xtape_jvp(tape, &cube, 1, &x, 1, &x, made));
  play(tape, made, 1, x, got);
  NEAR(got[1], 24);
  OK(xtape_jacobian(tape, cube, &x, 1, "{\"mode\": \"reverse\", \"chunk_size\": 2}", made));
  play(tape, made, 1, x, got);
  NEAR(got[4], 12);
  NEAR(got[5], 0);
  OK(xtape_hessian(tape, total, x, NULL, made));
  play(tape, made, 1, x, got);
  NEAR(got[8], 18);

  OK(xtape_input(tape, "z", XTAPE_FLOAT32, 0, NULL, &unrelated));
  FAILS(XTAPE_ERROR, "grad", xtape_grad(tape, &total, 1, &unrelated, 1, NULL, NULL, made));
  OK(xtape_grad(tape, &total, 1, VARS(x, unrelated), 2, NULL, "{\"allow_unused\": true}", made));
  CHECK(made[0].tape != 0 && made[1].tape == 0 && made[1].serial == 0 && made[1].node == 0);
  OK(xtape_grad(tape, &total, 1, &unrelated, 1, NULL, "{\"materialize_grads\": true}", made));
  FAILS(XTAPE_SHAPE_ERROR, "", xtape_grad(tape, &cube, 1, &x, 1, NULL, NULL, made));
  FAILS(XTAPE_DEFINITION_ERROR, "allow_unused",
        xtape_grad(tape, &total, 1, &x, 1, NULL, "{\"allow_unsed\": true}", made));
  FAILS(XTAPE_DEFINITION_ERROR, "true or false",
        xtape_grad(tape, &total, 1, &x, 1, NULL, "{\"allow_unused\": 1}", made));
  FAILS(XTAPE_ERROR, "'outputs' is null", xtape_grad(tape, NULL, 1, &x, 1, NULL, NULL, made));
  FAILS(XTAPE_ERROR, "'inputs' is null", xtape_grad(tape, &total, 1, NULL, 1, NULL, NULL, made));
  FAILS(XTAPE_ERROR, "'results' is null", xtape_grad(tape, &total, 1, &x, 1, NULL, NULL, NULL));
  FAILS(XTAPE_ERROR, "'tangents' is null", xtape_jvp(tape, &cube, 1, &x, 1, NULL, made));
  FAILS(XTAPE_DEFINITION_ERROR, "mode", xtape_jacobian(tape, cube, &x, 1, "{\"mode\": \"sideways\"}", made));
  FAILS(XTAPE_SHAPE_ERROR, "", xtape_hessian(tape, cube, x, NULL, made));
  OK(xtape_release(tape));
  FAILS(XTAPE_HANDLE_ERROR, "released", xtape_grad(tape, &total, 1, &x, 1, NULL, NULL, made));
}

/* Functions of callbacks. */

static xtape_status square(void* context, const xtape_var* inputs, size_t count, xtape_var* results, size_t capacity,
                           size_t* result_count) {
  return xtape_op(context, "square", inputs, count > 0, NULL, results, capacity, result_count);
}

static xtape_status misspelt(void* context, const xtape_var* inputs, size_t count, xtape_var* results, size_t capacity,
                             size_t* result_count) {
  return xtape_op(context, "sqaure", inputs, count, NULL, results, capacity, result_count);
}

static xtape_status own_failure(void* context, const xtape_var* inputs, size_t count, xtape_var* results,
                                size_t capacity, size_t* result_count) {
  (void)context, (void)inputs, (void)count, (void)results, (void)capacity, (void)result_count;
  return 42;
}

static xtape_status too_many(void* context, const xtape_var* inputs, size_t count, xtape_var* results, size_t capacity,
                             size_t* result_count) {
  (void)context, (void)inputs, (void)count, (void)results;
  *result_count = capacity + 1;
  return XTAPE_OK;
}

/* state' = state + slice; the output is state'. */
static xtape_status running_sum(void* context, const xtape_var* inputs, size_t count, xtape_var* results,
                                size_t capacity, size_t* result_count) {
  CHECK(count == 2 && capacity >= 2);
  const xtape_status status = xtape_op(context, "add", inputs, 2, NULL, results, 1, NULL);
  results[1] = results[0];
  *result_count = 2;
  return status;
}

static void callbacks(void) {
  xtape_var x, cube, total, made[3], zero;
  xtape_tape* tape = cubes(&x, &cube, &total);
  float got[16];
  size_t count = 0;
  OK(xtape_vmap(tape, square, tape, &x, 1, "{\"in_axes\": [0], \"out_axes\": [-1], \"randomness\": \"same\"}", made, 3,
                &count));
  CHECK(count == 1);
  play(tape, made, 1, x, got);
  NEAR(got[2], 9);
  OK(xtape_checkpoint(tape, square, tape, &x, 1, made, 1, NULL));
  play(tape, made, 1, x, got);
  NEAR(got[1], 4);
  const float nothing = 0;
  const xtape_view view = floats(&nothing, 0, NULL);
  OK(xtape_constant(tape, &view, &zero));
  OK(xtape_scan(tape, running_sum, tape, &x, 1, &zero, 1, "{\"axis\": 0, \"checkpoint_every\": [2]}", made, 3, &count));
  CHECK(count == 2);
  play(tape, made, 2, x, got);
  NEAR(got[1], 3);
  NEAR(got[3], 6);
  OK(xtape_scan(tape, running_sum, tape, &x, 1, &zero, 1, "{\"axis\": 0, \"reverse\": true}", made, 3, &count));
  play(tape, made, 1, x, got);
  NEAR(got[0], 6);

  FAILS(XTAPE_ERROR, "did you mean 'square'", xtape_vmap(tape, misspelt, tape, &x, 1, NULL, made, 3, &count));
  FAILS(XTAPE_CALLBACK_ERROR, "returned 42", xtape_vmap(tape, own_failure, tape, &x, 1, NULL, made, 3, &count));
  FAILS(XTAPE_CALLBACK_ERROR, "returned 42", xtape_checkpoint(tape, own_failure, tape, &x, 1, made, 3, &count));
  FAILS(XTAPE_ERROR, "more than its capacity", xtape_vmap(tape, too_many, tape, &x, 1, NULL, made, 3, &count));
  FAILS(XTAPE_ERROR, "'function' is null", xtape_vmap(tape, NULL, tape, &x, 1, NULL, made, 3, &count));
  FAILS(XTAPE_ERROR, "'function' is null", xtape_scan(tape, NULL, tape, &x, 1, &zero, 1, NULL, made, 3, &count));
  FAILS(XTAPE_ERROR, "fewer than the 2 states",
        xtape_scan(tape, square, tape, &x, 1, VARS(zero, zero), 2, "{\"axis\": 0}", made, 3, &count));
  FAILS(XTAPE_DEFINITION_ERROR, "in_axes", xtape_vmap(tape, square, tape, &x, 1, "{\"in_axes\": 0}", made, 3, &count));
  FAILS(XTAPE_DEFINITION_ERROR, "out_axes",
        xtape_vmap(tape, square, tape, &x, 1, "{\"out_axes\": [null]}", made, 3, &count));
  FAILS(XTAPE_DEFINITION_ERROR, "checkpoint_every",
        xtape_scan(tape, running_sum, tape, &x, 1, &zero, 1, "{\"checkpoint_every\": [\"a\"]}", made, 3, &count));
  OK(xtape_release(tape));
}

void derivatives_tests(void) {
  derivatives();
  callbacks();
}
