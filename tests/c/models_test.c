/* Models from definitions and ONNX files, texts, and runs. */
#include "check.h"

/* A name that is longer than names of files can be. */
static const char* long_name(void) {
  static char name[6000];
  memset(name, 'x', sizeof name - 1);
  return name;
}

/* The default dtype of a tape: that of a sum of numbers. */
static xtape_dtype default_dtype(xtape_tape* tape) {
  xtape_var y;
  xtape_dtype dtype = -1;
  int32_t rank;
  int64_t shape[XTAPE_MAX_RANK];
  OK(xtape_op(tape, "add", VARS(xtape_number(0.5), xtape_integer(1)), 2, NULL, &y, 1, NULL));
  OK(xtape_var_type(tape, y, &dtype, &rank, shape));
  return dtype;
}

struct recording {
  xtape_model* model;
  xtape_tape* tape;
};
static xtape_status record_and_fail(void* context, const xtape_var* inputs, size_t count, xtape_var* results,
                                    size_t capacity, size_t* result_count) {
  (void)inputs, (void)count;
  const struct recording* with = context;
  xtape_var x;
  OK(xtape_input(with->tape, "of four", XTAPE_FLOAT32, 1, SHAPE(4), &x));
  OK(xtape_model_record(with->model, with->tape, "f", &x, 1, results, capacity, result_count));
  CHECK(default_dtype(with->tape) == XTAPE_FLOAT32); /* that of the model */
  return 7;
}

static void definitions(void) {
  xtape_model* model = NULL;
  OK(xtape_model_open("gpt2",
                      "{\"hyper\": {\"n_layer\": 1, \"n_embd\": 8, \"n_head\": 2, \"n_positions\": 16, "
                      "\"vocab_size\": 11, \"dropout_rate\": 0}, \"seed\": 3, \"threads\": 1}",
                      &model));
  const char* text = NULL;
  OK(xtape_describe(model, &text));
  CHECK(has(text, "\"logits\":{\"inputs\":[{\"name\":\"tokens\""));
  CHECK(has(text, "\"n_layer\":1"));
  xtape_store *weights = NULL, *results = NULL;
  OK(xtape_weights(model, &weights));

  /* The loss and its gradient with respect to a weight, on a tape. */
  xtape_tape* tape = NULL;
  OK(xtape_tape_new("{\"mode\": \"eval\"}", &tape));
  xtape_var inputs[2], loss[4], weight, gradient;
  size_t count = 0, loss_count = 0;
  OK(xtape_model_inputs(model, tape, "loss", "{\"b\": 2, \"t\": 4}", inputs, 2, &count));
  CHECK(count == 2);
  OK(xtape_model_record(model, tape, "loss", inputs, count, loss, 4, &loss_count));
  OK(xtape_parameter(tape, weights, "ln_f.weight", &weight));
  OK(xtape_grad(tape, loss, 1, &weight, 1, NULL, NULL, &gradient));
  FAILS(XTAPE_ERROR, "did you mean 'loss'", xtape_model_inputs(model, tape, "lose", "{}", inputs, 2, &count));
  FAILS(XTAPE_ERROR, "'t'", xtape_model_inputs(model, tape, "loss", "{\"b\": 2}", inputs, 2, &count));
  FAILS(XTAPE_ERROR, "inputs, got 1", xtape_model_record(model, tape, "loss", inputs, 1, loss, 4, &count));

  /* Plays by name. */
  const int64_t tokens[] = {1, 2, 3, 4};
  const xtape_view feed = {(void*)(uintptr_t)tokens, XTAPE_INT64, 2, SHAPE(1, 4), NULL};
  const char* name = "tokens";
  OK(xtape_model_play(model, "logits", NULL, &name, &feed, 1, &results));
  OK(xtape_describe(results, &text));
  CHECK(has(text, "\"shape\":[1,4,11]"));
  OK(xtape_release(results));
  const char* wrong = "token";
  FAILS(XTAPE_ERROR, "did you mean 'tokens'", xtape_model_play(model, "logits", NULL, &wrong, &feed, 1, &results));
  FAILS(XTAPE_ERROR, "mode", xtape_model_play(model, "logits", "test", &name, &feed, 1, &results));
  FAILS(XTAPE_ERROR, "'names' is null", xtape_model_play(model, "logits", NULL, NULL, &feed, 1, &results));

  /* Weights in files. */
  OK(xtape_model_save(model, work_path("gpt2.safetensors"), NULL));
  OK(xtape_model_load_weights(model, work_path("gpt2.safetensors")));
  FAILS(XTAPE_FILE_ERROR, "", xtape_model_load_weights(model, work_path("w.safetensors")));
  OK(xtape_model_save(model, work_path("folder"), NULL));
  xtape_model* again = NULL;
  OK(xtape_model_open(work_path("folder"), "{\"weights\": \"bfloat16\"}", &again));
  OK(xtape_release(again));
  FAILS(XTAPE_ERROR, "xtape_onnx_save", xtape_model_save(model, work_path("gpt2.onnx"), NULL));
  FAILS(XTAPE_DEFINITION_ERROR, "formt", xtape_model_save(model, work_path("x"), "{\"formt\": \"F32\"}"));
  FAILS(XTAPE_HANDLE_ERROR, "a run", xtape_train(model, NULL, NULL, NULL));
  FAILS(XTAPE_HANDLE_ERROR, "a run", xtape_evaluate(model, &text));

  FAILS(XTAPE_FILE_ERROR, "did you mean", xtape_model_open("gpt22", NULL, &again));
  FAILS(XTAPE_FILE_ERROR, "there is no file", xtape_model_open(long_name(), NULL, &again));
  FAILS(XTAPE_DEFINITION_ERROR, "n_layr", xtape_model_open("gpt2", "{\"hyper\": {\"n_layr\": 1}}", &again));
  FAILS(XTAPE_DEFINITION_ERROR, "hypr", xtape_model_open("gpt2", "{\"hypr\": {}}", &again));
  FAILS(XTAPE_DEFINITION_ERROR, "line 1", xtape_model_open("{\"name\": 3}", NULL, &again));
  FAILS(XTAPE_ERROR, "'source' is null", xtape_model_open(NULL, NULL, &again));
  OK(xtape_release(weights));
  OK(xtape_release(tape));
  OK(xtape_release(model));
}

/* A text is no path, however long it is. */
static void long_texts(void) {
  char definition[9000] = "{\"xtape\": 2, \"about\": \"";
  memset(definition + strlen(definition), 'a', 8000);
  strcat(definition,
         "\", \"model\": {\"functions\": {\"f\": {\"inputs\": {\"x\": \"float [3]\"}, \"result\": \"x + x\"}}}}");
  xtape_model* model = NULL;
  xtape_store* results = NULL;
  if (!OK(xtape_model_open(definition, NULL, &model))) return;
  const float data[] = {1, 2, 3};
  const xtape_view feed = floats(data, 1, SHAPE(3));
  const char* name = "x";
  OK(xtape_model_play(model, "f", NULL, &name, &feed, 1, &results));
  OK(xtape_release(results));
  OK(xtape_release(model));
  definition[10] = ':';
  FAILS(XTAPE_DEFINITION_ERROR, "line 1", xtape_model_open(definition, NULL, &model));
}

/* What fails leaves a tape as it was: its nodes, its default dtype and its ops. */
static void failed_records(void) {
  xtape_model* model = NULL;
  xtape_tape* tape = NULL;
  OK(
      xtape_model_open("{\"xtape\": 2, \"model\": {\"functions\": {\"f\": {\"inputs\": {\"x\": \"float [n]\"}, "
                       "\"result\": \"matmul(x, iota((4,)) / 2)\"}}}}",
                       NULL, &model));
  OK(xtape_tape_new("{\"dtype\": \"float64\"}", &tape));
  xtape_var x, y;
  size_t count = 0;
  FAILS(XTAPE_ERROR, "'n'", xtape_model_inputs(model, tape, "f", NULL, &x, 1, &count));
  CHECK(default_dtype(tape) == XTAPE_FLOAT64);
  OK(xtape_input(tape, "x", XTAPE_FLOAT32, 1, SHAPE(3), &x));
  FAILS(XTAPE_DEFINITION_ERROR, "matmul", xtape_model_record(model, tape, "f", &x, 1, &y, 1, &count));
  CHECK(default_dtype(tape) == XTAPE_FLOAT64);
  FAILS(XTAPE_ERROR, "function", xtape_model_record(model, tape, "g", &x, 1, &y, 1, &count));
  CHECK(default_dtype(tape) == XTAPE_FLOAT64);
  struct recording recording = {model, tape};
  FAILS(XTAPE_CALLBACK_ERROR, "returned 7", xtape_vmap(tape, record_and_fail, &recording, &x, 1, NULL, &y, 1, &count));
  CHECK(default_dtype(tape) == XTAPE_FLOAT64);
  OK(xtape_release(tape));
  OK(xtape_release(model));
}

/* Ends after `*context` tokens. */
static int32_t few(void* context, int32_t token, const char* text) {
  CHECK(token >= 0 && token < 11 && text[0] == '\0');
  return --*(int*)context == 0;
}

static void texts(void) {
  xtape_model* model = NULL;
  OK(xtape_model_open("gpt2",
                      "{\"hyper\": {\"n_layer\": 1, \"n_embd\": 8, \"n_head\": 2, \"n_positions\": 16, "
                      "\"vocab_size\": 11}, \"threads\": 1}",
                      &model));
  int left = 3;
  OK(xtape_generate(model, NULL, "{\"prompt\": [1, 2], \"tokens\": 9, \"temperature\": 0}", few, &left));
  CHECK(left == 0);
  left = 100;
  OK(xtape_generate(model, NULL, "{\"prompt\": [1, 2], \"tokens\": 5, \"top_k\": 3, \"seed\": 4}", few, &left));
  CHECK(left == 95);
  FAILS(XTAPE_ERROR, "no tokenizer", xtape_generate(model, "hello", NULL, few, &left));
  FAILS(XTAPE_DEFINITION_ERROR, "'prompt'", xtape_generate(model, NULL, NULL, few, &left));
  FAILS(XTAPE_ERROR, "", xtape_generate(model, NULL, "{\"prompt\": []}", few, &left));
  FAILS(XTAPE_ERROR, "", xtape_generate(model, NULL, "{\"prompt\": [99]}", few, &left));
  FAILS(XTAPE_ERROR, "'each' is null", xtape_generate(model, NULL, "{\"prompt\": [1]}", NULL, NULL));
  OK(xtape_release(model));
}

static void onnx(void) {
  xtape_tape* tape = NULL;
  xtape_store *store = NULL, *results = NULL, *weights = NULL;
  OK(xtape_tape_new("{\"mode\": \"eval\"}", &tape));
  OK(xtape_store_new(&store));
  OK(xtape_store_initialise(store, "w", XTAPE_FLOAT32, 2, SHAPE(3, 1), "2", 0));
  xtape_var x, w, y;
  OK(xtape_input(tape, "x", XTAPE_FLOAT32, 2, SHAPE(2, 3), &x));
  OK(xtape_parameter(tape, store, "w", &w));
  OK(xtape_op(tape, "matmul", VARS(x, w), 2, NULL, &y, 1, NULL));
  const char *output = "y", *input = "x", *path = work_path("product.onnx");
  if (xtape_onnx_save(tape, path, &output, &y, 1, NULL) != XTAPE_OK && strstr(xtape_last_error(), "built without")) {
    OK(xtape_release(tape));
    OK(xtape_release(store));
    return;
  }
  OK(xtape_onnx_save(tape, path, &output, &y, 1, "{\"opset\": 20}"));
  FAILS(XTAPE_ERROR, "opset", xtape_onnx_save(tape, path, &output, &y, 1, "{\"opset\": 3}"));
  FAILS(XTAPE_ERROR, "'names' is null", xtape_onnx_save(tape, path, NULL, &y, 1, NULL));
  xtape_model* model = NULL;
  OK(xtape_model_open(path, "{\"threads\": 1}", &model));
  const char* text = NULL;
  OK(xtape_describe(model, &text));
  CHECK(has(text, "\"inputs\":[{\"name\":\"x\",\"dtype\":\"float32\",\"dims\":[2,3]}]"));
  const float data[] = {1, 2, 3, 4, 5, 6};
  const xtape_view feed = floats(data, 2, SHAPE(2, 3));
  OK(xtape_model_play(model, NULL, NULL, &input, &feed, 1, &results));
  xtape_array* array = NULL;
  xtape_view view;
  OK(xtape_store_get(results, "y", &array));
  OK(xtape_array_view(array, &view));
  NEAR(((float*)view.data)[1], 30);
  OK(xtape_release(array));

  /* Its weight is trained in place, and written back. */
  OK(xtape_weights(model, &weights));
  xtape_tape* other = NULL;
  xtape_var again, result, gradient;
  OK(xtape_tape_new(NULL, &other));
  OK(xtape_model_inputs(model, other, NULL, NULL, &again, 1, NULL));
  OK(xtape_model_record(model, other, NULL, &again, 1, &result, 1, NULL));
  OK(xtape_parameter(other, weights, "w", &w));
  OK(xtape_grad(other, &result, 1, &w, 1, NULL, "{\"sum_outputs\": true}", &gradient));
  OK(xtape_model_save(model, work_path("again.onnx"), NULL));
  OK(xtape_model_save(model, work_path("product.safetensors"), NULL));
  OK(xtape_model_load_weights(model, work_path("product.safetensors")));
  FAILS(XTAPE_ERROR, "one function", xtape_model_record(model, other, "main", &again, 1, &result, 1, NULL));
  FAILS(XTAPE_HANDLE_ERROR, "", xtape_generate(model, "x", NULL, few, NULL));
  FAILS(XTAPE_FILE_ERROR, "", xtape_model_open(work_path("none.onnx"), NULL, &model));
  OK(xtape_release(model));
  OK(xtape_release(weights));
  OK(xtape_release(results));
  OK(xtape_release(tape));
  OK(xtape_release(other));
  OK(xtape_release(store));
}

/* Gradients, Jacobians and Hessians are graphs that an ONNX file can have: written and read, they give the same. */
static void derivatives_as_onnx(void) {
  xtape_tape* tape = NULL;
  OK(xtape_tape_new("{\"mode\": \"eval\"}", &tape));
  xtape_var x, y, total, made[3];
  OK(xtape_input(tape, "x", XTAPE_FLOAT32, 1, SHAPE(3), &x));
  OK(xtape_op(tape, "tanh", &x, 1, NULL, &y, 1, NULL));
  OK(xtape_op(tape, "mul", VARS(y, x), 2, NULL, &y, 1, NULL));
  OK(xtape_op(tape, "sum", &y, 1, NULL, &total, 1, NULL));
  OK(xtape_grad(tape, &total, 1, &x, 1, NULL, NULL, &made[0]));
  OK(xtape_jacobian(tape, y, &x, 1, NULL, &made[1]));
  OK(xtape_hessian(tape, total, x, NULL, &made[2]));
  const char *names[] = {"gradient", "jacobian", "hessian"}, *input = "x", *path = work_path("derivatives.onnx");
  const float data[] = {0.5F, -1, 2};
  const xtape_view feed = floats(data, 1, SHAPE(3));
  xtape_model* model = NULL;
  xtape_store* results = NULL;
  if (xtape_onnx_save(tape, path, names, made, 3, NULL) == XTAPE_OK && OK(xtape_model_open(path, NULL, &model)) &&
      OK(xtape_model_play(model, NULL, NULL, &input, &feed, 1, &results))) {
    for (size_t i = 0; i < LENGTH(names); ++i) {
      xtape_array* array = NULL;
      xtape_view view;
      OK(xtape_store_get(results, names[i], &array));
      OK(xtape_array_view(array, &view));
      const double t = tanh(data[1]), slope = t + data[1] * (1 - t * t), bend = 2 * (1 - t * t) * (1 - data[1] * t);
      NEAR(((float*)view.data)[i == 0 ? 1 : 4], i == 2 ? bend : slope);
      OK(xtape_release(array));
    }
    OK(xtape_release(results));
    OK(xtape_release(model));
  } else {
    CHECK(has(xtape_last_error(), "built without"));
  }
  OK(xtape_release(tape));
}

static int32_t stop_at_two(void* context, int64_t update, double loss) {
  CHECK(loss > 0 && update == *(int64_t*)context + 1);
  *(int64_t*)context = update;
  return update == 2;
}

static int32_t collect(void* context, int32_t token, const char* text) {
  (void)token;
  strcat(context, text);
  return 0;
}

/* Uses the run in its training, in which it cannot be trained. */
static int32_t use_in_training(void* context, int64_t update, double loss) {
  int32_t finished = -1;
  const char* json = NULL;
  char continued[256] = "";
  FAILS(XTAPE_ERROR, "is being trained", xtape_train(context, NULL, NULL, &finished));
  CHECK(finished == -1 && loss > 0);
  OK(xtape_evaluate(context, &json));
  OK(xtape_generate(context, "abc", "{\"tokens\": 2}", collect, continued));
  OK(xtape_model_save(context, work_path("during.safetensors"), NULL));
  FAILS(XTAPE_ERROR, "is being trained", xtape_train(context, use_in_training, context, NULL));
  return update < 0;
}

static void runs(void) {
  FILE* file = fopen(work_path("text.txt"), "w");
  for (int i = 0; i < 60; ++i) fputs("abcdefgh\n", file);
  fclose(file);
  char recipe[1200];
  snprintf(
      recipe, sizeof recipe,
      "{\"xtape\": 2, \"name\": \"tiny\", \"definition\": \"gpt2\", \"hyper\": {\"n_layer\": 1, \"n_embd\": 8, "
      "\"n_head\": 2, "
      "\"n_positions\": 8, \"vocab_size\": {\"from\": \"vocabulary\"}, \"dropout_rate\": 0}, \"data\": {\"kind\": "
      "\"text\", "
      "\"text\": \"%s\", \"block_size\": 8}, \"tokenizer\": {\"kind\": \"character\"}, \"batch\": {\"size\": 2}, "
      "\"optimizer\": {\"kind\": \"adamw\"}, \"schedule\": {\"kind\": \"constant\", \"rate\": 0.01}, \"steps\": 3, "
      "\"threads\": 1}",
      work_path("text.txt"));
  xtape_model* run = NULL;
  const char* folder = work_path("run");
  FAILS(XTAPE_DEFINITION_ERROR, "stepps", xtape_run_new(recipe, "{\"stepps\": 5}", folder, &run));
  FAILS(XTAPE_DEFINITION_ERROR, "recipe, line 1", xtape_run_new("{\"name\": }", NULL, folder, &run));
  FAILS(XTAPE_ERROR, "'folder' is null", xtape_run_new(recipe, NULL, NULL, &run));
  if (!OK(xtape_run_new(recipe, "{\"steps\": 4, \"seed\": 5}", folder, &run))) return;
  int64_t update = 0;
  int32_t finished = -1;
  OK(xtape_train(run, stop_at_two, &update, &finished));
  CHECK(finished == 0 && update == 2);
  OK(xtape_release(run));
  OK(xtape_model_open(folder, "{\"resume\": true}", &run));
  OK(xtape_train(run, use_in_training, run, &finished));
  CHECK(finished == 1);
  const char* text = NULL;
  OK(xtape_evaluate(run, &text));
  CHECK(has(text, "\"validation_loss\":") && has(text, "\"step\":4"));
  xtape_store* weights = NULL;
  OK(xtape_weights(run, &weights)); /* a run is a model */
  OK(xtape_release(weights));
  char continued[256] = "";
  OK(xtape_generate(run, "abc", "{\"tokens\": 6, \"seed\": 1}", collect, continued));
  CHECK(strlen(continued) == 6);
  OK(xtape_release(run));
  OK(xtape_model_open(folder, "{\"checkpoint\": \"last\", \"settings\": {\"threads\": 1}}", &run));
  OK(xtape_release(run));
  FAILS(XTAPE_ERROR, "checkpoint", xtape_model_open(folder, "{\"checkpoint\": \"worst\"}", &run));
  FAILS(XTAPE_DEFINITION_ERROR, "resum", xtape_model_open(folder, "{\"resum\": true}", &run));
}

void models_tests(void) {
  definitions();
  long_texts();
  failed_records();
  texts();
  onnx();
  derivatives_as_onnx();
  runs();
}
