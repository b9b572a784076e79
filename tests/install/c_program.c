/* A play of a definition that is installed, by the C interface alone. */
#include <stdio.h>
#include <xtape.h>

int main(void) {
  const int64_t tokens[] = {1, 2, 3}, shape[] = {1, 3};
  const xtape_view feed = {(void*)tokens, XTAPE_INT64, 2, shape, NULL};
  const char *options = "{\"hyper\": {\"n_layer\": 1, \"n_embd\": 8, \"n_head\": 2, \"vocab_size\": 11}}",
             *name = "tokens";
  const char* text = "";
  xtape_model* model;
  xtape_store* results;
  const int failed = xtape_model_open("gpt2", options, &model) ||
                     xtape_model_play(model, "logits", NULL, &name, &feed, 1, &results) ||
                     xtape_describe(results, &text);
  puts(failed ? xtape_last_error() : text);
  return failed;
}
