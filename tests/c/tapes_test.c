/* Tapes, and ops by name. */
#include "check.h"

/* The element `index` of a float32 output of a play of one var, with one fed input or none. */
static float played(xtape_tape* tape, xtape_var output, xtape_var input, const float* data, int32_t rank,
                    const int64_t* shape, size_t index) {
  xtape_player* player = NULL;
  xtape_view view = floats(data, rank, shape), got;
  float element = NAN;
  OK(xtape_player_new(tape, &output, 1, NULL, 0, NULL, &player));
  OK(xtape_play(player, &input, &view, data == NULL ? 0 : 1));
  if (OK(xtape_player_view(player, 0, &got)) && got.dtype == XTAPE_FLOAT32) element = ((float*)got.data)[index];
  OK(xtape_release(player));
  return element;
}

static void ops(void) {
  xtape_tape* tape = NULL;
  OK(xtape_tape_new(NULL, &tape));
  xtape_var x, y, pair[2];
  size_t count = 0;
  OK(xtape_input(tape, "x", XTAPE_FLOAT32, 2, SHAPE(2, 3), &x));
  const float data[] = {3, 1, 2, 6, 5, 4};
  /* Numbers take the dtype of the other operands. */
  OK(xtape_op(tape, "mul", VARS(x, xtape_number(0.5)), 2, NULL, &y, 1, NULL));
  OK(xtape_op(tape, "add", VARS(y, xtape_integer(10)), 2, "{}", &y, 1, &count));
  CHECK(count == 1);
  NEAR(played(tape, y, x, data, 2, SHAPE(2, 3), 3), 13);
  /* Attributes: integers, lists, flags, texts, dtypes, named sizes, numbers. */
  OK(xtape_op(tape, "sum", &x, 1, "{\"axis\": [0], \"keepdims\": true}", &y, 1, NULL));
  NEAR(played(tape, y, x, data, 2, SHAPE(2, 3), 0), 9);
  OK(xtape_op(tape, "softmax", &x, 1, "{\"axis\": -1}", &y, 1, NULL));
  OK(xtape_op(tape, "einsum", VARS(x, x), 2, "{\"equation\": \"ij,kj->ik\"}", &y, 1, NULL));
  NEAR(played(tape, y, x, data, 2, SHAPE(2, 3), 1), 3 * 6 + 1 * 5 + 2 * 4);
  OK(xtape_op(tape, "rearrange", &x, 1, "{\"pattern\": \"a (b c) -> (a b) c\", \"sizes\": {\"c\": 3}}", &y, 1, NULL));
  OK(xtape_op(tape, "cast", &x, 1, "{\"dtype\": \"float64\"}", &y, 1, NULL));
  xtape_dtype dtype;
  int32_t rank;
  int64_t shape[XTAPE_MAX_RANK];
  OK(xtape_var_type(tape, y, &dtype, &rank, shape));
  CHECK(dtype == XTAPE_FLOAT64 && rank == 2 && shape[0] == 2 && shape[1] == 3);
  OK(xtape_op(tape, "clip", &x, 1, "{\"low\": 2, \"high\": {\"number\": \"inf\"}}", &y, 1, NULL));
  NEAR(played(tape, y, x, data, 2, SHAPE(2, 3), 1), 2);
  /* Several results. */
  OK(xtape_op(tape, "sort", &x, 1, NULL, pair, 2, &count));
  CHECK(count == 2);
  NEAR(played(tape, pair[0], x, data, 2, SHAPE(2, 3), 0), 1);
  FAILS(XTAPE_ERROR, "2 results, and 'results' has room for 1", xtape_op(tape, "sort", &x, 1, NULL, pair, 1, &count));
  FAILS(XTAPE_ERROR, "1 results, and 'results' has room for 2", xtape_op(tape, "exp", &x, 1, NULL, pair, 2, NULL));
  /* No operand is a var. */
  OK(xtape_op(tape, "add", VARS(xtape_number(1.5), xtape_integer(2)), 2, NULL, &y, 1, NULL));
  NEAR(played(tape, y, x, NULL, 0, NULL, 0), 3.5);
  OK(xtape_op(tape, "iota", NULL, 0, "{\"shape\": 4, \"axis\": 0, \"dtype\": \"float32\"}", &y, 1, NULL));
  NEAR(played(tape, y, x, NULL, 0, NULL, 3), 3);

  FAILS(XTAPE_ERROR, "did you mean 'matmul'", xtape_op(tape, "matmal", &x, 1, NULL, &y, 1, NULL));
  FAILS(XTAPE_SHAPE_ERROR, "tapes_test.c, line ",
        XTAPE_HERE(xtape_op(tape, "matmul", VARS(x, x), 2, NULL, &y, 1, NULL)));
  CHECK(strstr(xtape_last_error(), "matmul") != NULL && strstr(xtape_last_error(), "(2, 3)") != NULL);
  FAILS(XTAPE_ERROR, "no attribute 'axes'", xtape_op(tape, "sum", &x, 1, "{\"axes\": 0}", &y, 1, NULL));
  FAILS(XTAPE_ERROR, "axis", xtape_op(tape, "softmax", &x, 1, "{\"axis\": \"last\"}", &y, 1, NULL));
  FAILS(XTAPE_DEFINITION_ERROR, "attributes of xtape_op", xtape_op(tape, "sum", &x, 1, "{\"axis\": }", &y, 1, NULL));
  FAILS(XTAPE_DEFINITION_ERROR, "an object", xtape_op(tape, "sum", &x, 1, "[1]", &y, 1, NULL));
  FAILS(XTAPE_DEFINITION_ERROR, "", xtape_op(tape, "sum", &x, 1, "{\"axis\": null}", &y, 1, NULL));
  FAILS(XTAPE_ERROR, "", xtape_op(tape, "exp", NULL, 0, NULL, &y, 1, NULL));
  FAILS(XTAPE_ERROR, "'operands' is null", xtape_op(tape, "exp", NULL, 1, NULL, &y, 1, NULL));
  FAILS(XTAPE_ERROR, "'results' is null", xtape_op(tape, "exp", &x, 1, NULL, NULL, 1, NULL));
  FAILS(XTAPE_ERROR, "'name' is null", xtape_op(tape, NULL, &x, 1, NULL, &y, 1, NULL));
  FAILS(XTAPE_HANDLE_ERROR, "'tape' is null", xtape_op(NULL, "exp", &x, 1, NULL, &y, 1, NULL));
  FAILS(XTAPE_DTYPE_ERROR, "", xtape_op(tape, "take", VARS(x, x), 2, NULL, &y, 1, NULL));
  OK(xtape_release(tape));
}

static void table(void) {
  const char* json = NULL;
  OK(xtape_op_table(&json));
  CHECK(has(json, "\"einsum\":{\"inputs\":[{\"name\":"));
  CHECK(has(json, "{\"name\":\"axis\",\"type\":\"an integer\""));
  FAILS(XTAPE_ERROR, "'json' is null", xtape_op_table(NULL));
}

static void vars(void) {
  xtape_tape *tape = NULL, *other = NULL;
  OK(xtape_tape_new("{\"mode\": \"eval\", \"dtype\": \"float64\"}", &tape));
  OK(xtape_tape_new("{}", &other));
  xtape_var x, y, z;
  OK(xtape_input(tape, "x", XTAPE_FLOAT64, 1, SHAPE(2), &x));
  OK(xtape_input(other, "x", XTAPE_FLOAT64, 1, SHAPE(2), &z));
  FAILS(XTAPE_HANDLE_ERROR, "another tape", xtape_op(tape, "add", VARS(x, z), 2, NULL, &y, 1, NULL));
  FAILS(XTAPE_HANDLE_ERROR, "has no value", xtape_op(tape, "exp", VARS({0}), 1, NULL, &y, 1, NULL));
  xtape_dtype dtype;
  int32_t rank;
  int64_t shape[XTAPE_MAX_RANK];
  FAILS(XTAPE_HANDLE_ERROR, "a number", xtape_var_type(tape, xtape_number(1), &dtype, &rank, shape));
  xtape_var bad = x;
  bad.node = 1000;
  FAILS(XTAPE_HANDLE_ERROR, "stale", xtape_op(tape, "exp", &bad, 1, NULL, &y, 1, NULL));
  bad = x, bad.node = -1;
  FAILS(XTAPE_HANDLE_ERROR, "stale", xtape_op(tape, "exp", &bad, 1, NULL, &y, 1, NULL));
  bad = x, bad.serial += 1;
  FAILS(XTAPE_HANDLE_ERROR, "stale", xtape_op(tape, "exp", &bad, 1, NULL, &y, 1, NULL));
  bad = x, bad.output = 3;
  FAILS(XTAPE_HANDLE_ERROR, "", xtape_op(tape, "exp", &bad, 1, NULL, &y, 1, NULL));
  FAILS(XTAPE_ERROR, "'dtype' is null", xtape_var_type(tape, x, NULL, &rank, shape));
  FAILS(XTAPE_ERROR, "'rank' is null", xtape_var_type(tape, x, &dtype, NULL, shape));
  FAILS(XTAPE_ERROR, "'shape' is null", xtape_var_type(tape, x, &dtype, &rank, NULL));

  FAILS(XTAPE_ERROR, "'x'", xtape_input(tape, "x", XTAPE_FLOAT32, 0, NULL, &y));
  FAILS(XTAPE_SHAPE_ERROR, "", xtape_input(tape, "y", XTAPE_FLOAT32, 2, SHAPE(INT64_MAX, 8), &y));
  FAILS(XTAPE_DTYPE_ERROR, "no dtype", xtape_input(tape, "y", 99, 0, NULL, &y));
  FAILS(XTAPE_ERROR, "'results' is null", xtape_input(tape, "y", XTAPE_FLOAT32, 0, NULL, NULL));
  xtape_view view = {(double[]){1, 2, 3}, XTAPE_FLOAT64, 1, SHAPE(3), NULL};
  OK(xtape_constant(tape, &view, &y));
  FAILS(XTAPE_ERROR, "'values' is null", xtape_constant(tape, NULL, &y));
  view.data = NULL;
  FAILS(XTAPE_ERROR, "no data", xtape_constant(tape, &view, &y));

  xtape_store* store = NULL;
  OK(xtape_store_new(&store));
  OK(xtape_store_initialise(store, "w", XTAPE_FLOAT64, 1, SHAPE(2), "2", 0));
  xtape_var w, again;
  OK(xtape_parameter(tape, store, "w", &w));
  OK(xtape_parameter(tape, store, "w", &again));
  CHECK(w.node == again.node);
  OK(xtape_var_named(tape, "w", &again));
  CHECK(memcmp(&w, &again, sizeof w) == 0);
  FAILS(XTAPE_ERROR, "'v'", xtape_parameter(tape, store, "v", &w));
  FAILS(XTAPE_ERROR, "did you mean", xtape_var_named(tape, "wx", &again));
  FAILS(XTAPE_HANDLE_ERROR, "'store'", xtape_parameter(tape, released(), "w", &w));

  /* Files. */
  OK(xtape_op(tape, "mul", VARS(x, w), 2, NULL, &y, 1, NULL));
  const char* names[] = {"product"};
  OK(xtape_tape_save(tape, work_path("tape"), names, &y, 1));
  xtape_tape* read = NULL;
  OK(xtape_tape_load(work_path("tape"), store, &read));
  OK(xtape_var_named(read, "product", &y));
  const char* text = NULL;
  OK(xtape_describe(read, &text));
  CHECK(has(text, "\"mode\":\"eval\"") && has(text, "mul("));
  FAILS(XTAPE_FILE_ERROR, "", xtape_tape_load(work_path("no tape"), NULL, &other));
  FAILS(XTAPE_HANDLE_ERROR, "another tape", xtape_tape_save(tape, work_path("tape2"), names, &z, 1));
  FAILS(XTAPE_ERROR, "'names' is null", xtape_tape_save(tape, work_path("tape2"), NULL, &x, 1));
  FAILS(XTAPE_DEFINITION_ERROR, "did you mean 'mode'", xtape_tape_new("{\"mod\": \"eval\"}", &tape));
  FAILS(XTAPE_DEFINITION_ERROR, "mode", xtape_tape_new("{\"mode\": \"test\"}", &tape));
  FAILS(XTAPE_DTYPE_ERROR, "", xtape_tape_new("{\"dtype\": \"int32\"}", &tape));
  OK(xtape_release(store)); /* the tape keeps the array */
  OK(xtape_release(tape));
  OK(xtape_release(other));
  OK(xtape_release(read));
}

void tapes_tests(void) {
  ops();
  table();
  vars();
}
