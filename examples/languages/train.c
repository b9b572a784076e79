// A network with one hidden layer learns a sine, by the C interface.
// cc -std=c11 train.c $(pkg-config --cflags --libs xtape-c) -lm -o train
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <xtape.h>

#define TRY(call) \
  if (XTAPE_HERE(call) != XTAPE_OK) fail()
static void fail(void) {
  fprintf(stderr, "%s\n", xtape_last_error());
  exit(1);
}

enum { rows = 64, hidden = 16 };

static xtape_var weight(xtape_tape* tape, xtape_store* weights, const char* name, int64_t in, int64_t out) {
  xtape_var var;
  TRY(xtape_store_initialise(weights, name, XTAPE_FLOAT32, 2, (int64_t[]){in, out}, "\"glorot_uniform\"", 1));
  TRY(xtape_parameter(tape, weights, name, &var));
  return var;
}

static xtape_var op(xtape_tape* tape, const char* name, xtape_var a, xtape_var b) {
  const xtape_var operands[] = {a, b};
  xtape_var result;
  TRY(xtape_op(tape, name, operands, b.tape == 0 ? 1 : 2, NULL, &result, 1, NULL));
  return result;
}

int main(void) {
  const xtape_var none = {0};
  xtape_tape* tape;
  xtape_store* weights;
  TRY(xtape_tape_new(NULL, &tape));
  TRY(xtape_store_new(&weights));
  xtape_var in[2];  // the points, and their sines
  TRY(xtape_input(tape, "x", XTAPE_FLOAT32, 2, (int64_t[]){rows, 1}, &in[0]));
  TRY(xtape_input(tape, "y", XTAPE_FLOAT32, 2, (int64_t[]){rows, 1}, &in[1]));
  const xtape_var shift = weight(tape, weights, "shift", 1, hidden);
  const xtape_var wide = op(tape, "add", op(tape, "matmul", in[0], weight(tape, weights, "first", 1, hidden)), shift);
  const xtape_var y = op(tape, "matmul", op(tape, "tanh", wide, none), weight(tape, weights, "last", hidden, 1));
  const xtape_var loss = op(tape, "mse_loss", y, in[1]);

  xtape_step* step;
  TRY(xtape_step_new(tape, &loss, 1, weights, "{\"optimizer\": {\"kind\": \"adam\"}, \"schedule\": 0.02}", &step));
  float x[rows], sines[rows];
  for (int i = 0; i < rows; ++i) sines[i] = sinf(x[i] = 6.28F * (float)i / rows - 3.14F);
  const xtape_view feeds[] = {{x, XTAPE_FLOAT32, 2, (int64_t[]){rows, 1}, NULL},
                              {sines, XTAPE_FLOAT32, 2, (int64_t[]){rows, 1}, NULL}};
  double before = 0;
  for (int i = 0; i <= 600; ++i) {
    TRY(xtape_step_update(step, in, feeds, 2, &before));
    if (i % 200 == 0) printf("update %d  loss %.4f\n", i, before);
  }
  TRY(xtape_store_save(weights, "sine.safetensors"));
  xtape_release(step), xtape_release(weights), xtape_release(tape);
  return before < 0.01 ? 0 : 1;
}
