/* Checks of the tests of the C interface. Each place of a check counts once, however often it is evaluated. */
#ifndef CHECK_H
#define CHECK_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "xtape.h"

int check_that(int holds, const char* what, const char* file, int line);
/* Whether the call gave this status and, unless it is XTAPE_OK, an error whose text contains `words`. */
int check_status(xtape_status got, xtape_status wanted, const char* words, const char* call, const char* file,
                 int line);

#define CHECK(condition) check_that((condition) != 0, #condition, __FILE__, __LINE__)
/* Evaluates the call once. */
#define OK(call) check_status((call), XTAPE_OK, "", #call, __FILE__, __LINE__)
#define FAILS(status, words, call) check_status((call), status, words, #call, __FILE__, __LINE__)
#define NEAR(a, b) \
  check_that(fabs((double)(a) - (double)(b)) < 1e-5 * (1 + fabs((double)(b))), #a " is near " #b, __FILE__, __LINE__)

#define LENGTH(list) (sizeof(list) / sizeof((list)[0]))
#define SHAPE(...) ((const int64_t[]){__VA_ARGS__})
#define VARS(...) ((const xtape_var[]){__VA_ARGS__})

/* Whether a text exists and contains `words`. */
static inline int has(const char* text, const char* words) {
  return text != NULL && strstr(text, words) != NULL;
}
/* A dense float32 view. */
static inline xtape_view floats(const float* data, int32_t rank, const int64_t* shape) {
  return (xtape_view){(void*)(uintptr_t)data, XTAPE_FLOAT32, rank, shape, NULL};
}
/* A folder for files, which is removed at the end. */
const char* work_folder(void);
/* "FOLDER/NAME", valid until the eighth call after this one. */
const char* work_path(const char* name);
/* A handle that has been released. */
void* released(void);

void arrays_tests(void);
void tapes_tests(void);
void derivatives_tests(void);
void players_tests(void);
void models_tests(void);
void threads_tests(void);
void random_tests(void);

#endif
