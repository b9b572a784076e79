/* Random calls with random arguments, right and wrong. Each call must give a status and, unless it is XTAPE_OK, a text;
 * memory is what the sanitizers watch. The seed is fixed. */
#include "check.h"

static uint64_t state = 88172645463325252U;
static uint64_t draw(uint64_t below) { /* xorshift64 */
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return state % below;
}

enum { kept = 12, var_count = 24 };
static void* handles[kept];
static xtape_var values[var_count];
static float elements[64];
static int64_t all_sizes[4][12];

static void* any_handle(void) {
  static int nothing;
  return draw(12) == 0 ? NULL : draw(20) == 0 ? &nothing : handles[draw(kept)];
}
static xtape_var any_var(void) {
  if (draw(10) == 0) return xtape_number((double)draw(9) - 4);
  if (draw(12) == 0)
    return (xtape_var){(uint32_t)draw(4), (uint32_t)draw(4), (int32_t)draw(9) - 4, (int32_t)draw(3) - 1};
  return values[draw(var_count)];
}
/* The last four shapes stay as they are. */
static const int64_t* any_shape(int32_t* rank) {
  static size_t next = 0;
  int64_t* sizes = all_sizes[next++ % LENGTH(all_sizes)];
  *rank = draw(15) == 0 ? (int32_t)draw(14) - 2 : (int32_t)draw(3);
  for (size_t i = 0; i < LENGTH(all_sizes[0]); ++i)
    sizes[i] = draw(30) == 0 ? (int64_t)draw(UINT64_MAX) : (int64_t)draw(4);
  return draw(30) == 0 ? NULL : sizes;
}
static const char* any_text(void) {
  static const char* const texts[] = {"x",    "y",       "w",      "add",           "mul", "matmul", "softmax", "sum",
                                      "take", "reshape", "concat", "\"ones\"",      "0.5", "{}",     "",        "\xff",
                                      "sort", "einsum",  "exp",    "{\"axis\": 0}", "[",   "{\"x\"}"};
  return draw(20) == 0 ? NULL : texts[draw(LENGTH(texts))];
}
static const char* any_attributes(void) {
  static const char* const texts[] = {"{}",
                                      "{\"axis\": 0}",
                                      "{\"axis\": -1}",
                                      "{\"axis\": 9223372036854775807}",
                                      "{\"shape\": [2, -1]}",
                                      "{\"shape\": [4611686018427387904, 8]}",
                                      "{\"equation\": \"ij,jk->ik\"}",
                                      "{\"axis\": [0, 0]}",
                                      "{\"a\": {\"b\": []}}",
                                      "{"};
  return draw(3) == 0 ? NULL : texts[draw(LENGTH(texts))];
}
/* A view whose elements are all in `elements`. */
static xtape_view any_view(void) {
  int32_t rank;
  const int64_t* shape = any_shape(&rank);
  int64_t count = 1;
  for (int32_t i = 0; shape != NULL && i < rank && i < XTAPE_MAX_RANK; ++i)
    count = shape[i] < 0 || shape[i] > 4 ? 65 : count * shape[i];
  const int fits = count <= 64 && rank >= 0 && rank <= XTAPE_MAX_RANK && shape != NULL;
  const xtape_dtype dtype = draw(4) == 0 ? (xtape_dtype)draw(15) - 1 : XTAPE_FLOAT32;
  const int wide = dtype == XTAPE_FLOAT64 || dtype == XTAPE_INT64 || dtype > XTAPE_BOOL;
  return (xtape_view){fits && (!wide || count <= 16) && draw(20) > 0 ? elements : NULL, dtype, rank, shape, NULL};
}
static void keep(void* handle) {
  if (handle == NULL) return;
  const size_t place = draw(kept);
  xtape_release(handles[place]);
  handles[place] = handle;
}

static xtape_status square(void* tape, const xtape_var* inputs, size_t count, xtape_var* results, size_t capacity,
                           size_t* result_count) {
  return count == 0 || draw(8) == 0 ? 3 : xtape_op(tape, "square", inputs, 1, NULL, results, capacity, result_count);
}

static xtape_status any_call(void) {
  const xtape_var vars[] = {any_var(), any_var(), any_var()};
  const size_t count = draw(4), place = draw(var_count - 4);
  const xtape_view views[] = {any_view(), any_view()};
  void *handle = NULL, *tape = any_handle(), *other = any_handle();
  size_t written = 0;
  int32_t rank = 0;
  xtape_status status = XTAPE_OK;
  const uint64_t which = draw(21);
  switch (which) {
    case 0:
      status = xtape_store_new((xtape_store**)&handle);
      break;
    case 1:
      status = xtape_tape_new(any_attributes(), (xtape_tape**)&handle);
      break;
    case 2:
      status = xtape_array_new(&views[0], (xtape_array**)&handle);
      break;
    case 3:
      status = xtape_store_set(tape, any_text(), other);
      break;
    case 4:
      status = xtape_store_get(tape, any_text(), (xtape_array**)&handle);
      break;
    case 5: {
      const int64_t* shape = any_shape(&rank);
      status = xtape_store_initialise(tape, any_text(), (xtape_dtype)draw(9), rank, shape, any_text(), draw(9));
      break;
    }
    case 6: {
      const int64_t* shape = any_shape(&rank);
      status =
          xtape_input(tape, any_text(), draw(9) ? XTAPE_FLOAT32 : (xtape_dtype)draw(14), rank, shape, &values[place]);
      break;
    }
    case 7:
      status = xtape_parameter(tape, other, any_text(), &values[place]);
      break;
    case 8:
      status = xtape_constant(tape, &views[0], &values[place]);
      break;
    case 9:
    case 10:
    case 11:
      status = xtape_op(tape, any_text(), vars, count, any_attributes(), &values[place], 1 + draw(3), &written);
      break;
    case 12:
      status = xtape_grad(tape, vars, 1, vars + 1, draw(3), NULL, any_attributes(), &values[place]);
      break;
    case 13:
      status = xtape_jvp(tape, vars, 1, vars + 1, 1, vars + 2, &values[place]);
      break;
    case 14:
      status = xtape_player_new(tape, vars, count, NULL, 0, "{\"threads\": 1}", (xtape_player**)&handle);
      break;
    case 15:
      status = xtape_play(tape, vars, views, draw(3));
      break;
    case 16: {
      xtape_view view;
      status = xtape_player_view(tape, draw(3), &view);
      break;
    }
    case 17:
      status = xtape_player_array(tape, draw(3), (xtape_array**)&handle);
      break;
    case 18:
      status = xtape_step_new(tape, vars, 1, other, NULL, (xtape_step**)&handle);
      break;
    case 19:
      status = xtape_vmap(tape, square, tape, vars, count, NULL, &values[place], 2, &written);
      break;
    default: {
      const char* text = NULL;
      status = xtape_describe(tape, &text);
      break;
    }
  }
  keep(handle);
  return status;
}

void random_tests(void) {
  int right = 0, wrong = 0, unexplained = 0;
  for (int i = 0; i < 20000; ++i) {
    const xtape_status status = any_call();
    if (status == XTAPE_OK)
      ++right;
    else
      ++wrong;
    unexplained += status < 0 || status > XTAPE_CALLBACK_ERROR || (status != XTAPE_OK && xtape_last_error()[0] == '\0');
  }
  CHECK(unexplained == 0);
  CHECK(right > 500 && wrong > 500);
  for (int i = 0; i < kept; ++i) OK(xtape_release(handles[i]));
}
