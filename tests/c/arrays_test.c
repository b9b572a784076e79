/* Errors, handles, arrays, DLPack and stores. */
#include "check.h"

static void handles(void) {
  CHECK(strncmp(xtape_version(), "0.", 2) == 0);
  OK(xtape_release(NULL));
  xtape_store* store = NULL;
  FAILS(XTAPE_ERROR, "xtape_store_new: 'store' is null", xtape_store_new(NULL));
  OK(xtape_store_new(&store));
  CHECK(store != NULL);
  const char* text = NULL;
  OK(xtape_describe(store, &text));
  CHECK(strcmp(text, "{}") == 0);
  FAILS(XTAPE_ERROR, "'json' is null", xtape_describe(store, NULL));
  FAILS(XTAPE_HANDLE_ERROR, "'tape' must be a handle of a tape, not of a store",
        xtape_input((xtape_tape*)store, "x", XTAPE_FLOAT32, 0, NULL, &(xtape_var){0}));
  OK(xtape_release(store));
  FAILS(XTAPE_HANDLE_ERROR, "released before", xtape_release(store));
  FAILS(XTAPE_HANDLE_ERROR, "released", xtape_describe(store, &text));
  FAILS(XTAPE_HANDLE_ERROR, "'handle' is null", xtape_describe(NULL, &text));
  int foreign = 0;
  FAILS(XTAPE_HANDLE_ERROR, "no handle", xtape_describe(&foreign, &text));
  FAILS(XTAPE_HANDLE_ERROR, "no handle", xtape_release(&foreign));
}

static void places(void) {
  xtape_store* store = NULL;
  OK(xtape_store_new(&store));
  xtape_array* array = NULL;
  FAILS(XTAPE_ERROR, "arrays_test.c, line ", XTAPE_HERE(xtape_store_get(store, "w", &array)));
  FAILS(XTAPE_ERROR, "xtape_store_get: ", xtape_store_get(store, "w", &array)); /* the place held for one call */
  CHECK(strstr(xtape_last_error(), "line") == NULL);
  xtape_at("physics.f90", 12);
  FAILS(XTAPE_ERROR, "physics.f90, line 12: ", xtape_store_get(store, "w", &array));
  xtape_at(NULL, 3);
  FAILS(XTAPE_ERROR, "xtape_store_get", xtape_store_get(store, "w", &array));
  OK(xtape_release(store));
}

static void views(void) {
  const float data[] = {1, 2, 3, 4, 5, 6};
  xtape_array* array = NULL;
  xtape_view view = floats(data, 2, SHAPE(3, 2)), got;
  view.strides = SHAPE(1, 3); /* the transpose of [2, 3] */
  OK(xtape_array_new(&view, &array));
  OK(xtape_array_view(array, &got));
  CHECK(got.dtype == XTAPE_FLOAT32 && got.rank == 2 && got.shape[0] == 3 && got.shape[1] == 2);
  CHECK(got.strides[0] == 2 && got.strides[1] == 1);
  const float wanted[] = {1, 4, 2, 5, 3, 6};
  CHECK(memcmp(got.data, wanted, sizeof wanted) == 0);
  ((float*)got.data)[0] = 7;
  OK(xtape_array_view(array, &got));
  CHECK(((float*)got.data)[0] == 7 && data[0] == 1);
  OK(xtape_release(array));
  FAILS(XTAPE_HANDLE_ERROR, "'array'", xtape_array_view(array, &got));

  view.data = NULL; /* zeros */
  OK(xtape_array_new(&view, &array));
  OK(xtape_array_view(array, &got));
  CHECK(((float*)got.data)[5] == 0);
  FAILS(XTAPE_ERROR, "'view' is null", xtape_array_view(array, NULL));
  OK(xtape_release(array));

  FAILS(XTAPE_ERROR, "'values' is null", xtape_array_new(NULL, &array));
  FAILS(XTAPE_ERROR, "'array' is null", xtape_array_new(&view, NULL));
  view = floats(data, 1, SHAPE(6));
  view.dtype = 13;
  FAILS(XTAPE_DTYPE_ERROR, "13 is no dtype", xtape_array_new(&view, &array));
  view.dtype = -1;
  FAILS(XTAPE_DTYPE_ERROR, "-1 is no dtype", xtape_array_new(&view, &array));
  view = floats(data, -1, SHAPE(6));
  FAILS(XTAPE_SHAPE_ERROR, "the rank is -1", xtape_array_new(&view, &array));
  view = floats(data, 11, SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1));
  FAILS(XTAPE_SHAPE_ERROR, "", xtape_array_new(&view, &array));
  view = floats(data, 1, NULL);
  FAILS(XTAPE_ERROR, "'shape' is null", xtape_array_new(&view, &array));
  view = floats(data, 1, SHAPE(-2));
  FAILS(XTAPE_SHAPE_ERROR, "-2", xtape_array_new(&view, &array));
  view = floats(NULL, 3, SHAPE(INT64_MAX, INT64_MAX, 2));
  FAILS(XTAPE_SHAPE_ERROR, "", xtape_array_new(&view, &array));
  view = floats(NULL, 2, SHAPE((int64_t)1 << 40, 1 << 20)); /* 2^62 bytes: a valid shape that no memory holds */
  CHECK(xtape_array_new(&view, &array) != XTAPE_OK && xtape_last_error()[0] != '\0');
  view = floats((const float*)((const char*)data + 1), 1, SHAPE(2));
  FAILS(XTAPE_ERROR, "not aligned to the 4 bytes", xtape_array_new(&view, &array));
  view = floats(data, 0, NULL);
  OK(xtape_array_new(&view, &array)); /* rank 0 needs no shape */
  OK(xtape_release(array));
}

/* The structs of DLPack, as a program that receives them knows them. */
typedef struct {
  void* data;
  int32_t device, device_id, rank;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} tensor_t;
typedef struct managed_t {
  tensor_t tensor;
  void* context;
  void (*deleter)(struct managed_t*);
} managed_t;
typedef struct versioned_t {
  uint32_t major, minor;
  void* context;
  void (*deleter)(struct versioned_t*);
  uint64_t flags;
  tensor_t tensor;
} versioned_t;

static int deleted = 0;
static void count_managed(managed_t* managed) {
  deleted += managed->context == &deleted;
}
static void count_versioned(versioned_t* managed) {
  deleted += managed->context == &deleted;
}

static void dlpack_out(void) {
  const float data[] = {1, 2, 3, 4, 5, 6};
  xtape_view view = floats(data, 2, SHAPE(2, 3)), own;
  xtape_array* array = NULL;
  OK(xtape_array_new(&view, &array));
  OK(xtape_array_view(array, &own));
  void* managed = NULL;
  OK(xtape_array_to_dlpack(array, 1, &managed));
  versioned_t* given = managed;
  CHECK(given->major == 1 && given->flags == 0);
  CHECK(given->tensor.data == own.data && given->tensor.byte_offset == 0 && given->tensor.device == 1);
  CHECK(given->tensor.code == 2 && given->tensor.bits == 32 && given->tensor.lanes == 1);
  CHECK(given->tensor.rank == 2 && given->tensor.shape[1] == 3 && given->tensor.strides[0] == 3);
  OK(xtape_release(array)); /* the receiver keeps the memory */
  CHECK(((float*)given->tensor.data)[5] == 6);
  given->deleter(given);

  OK(xtape_array_new(&view, &array));
  OK(xtape_array_to_dlpack(array, 0, &managed));
  managed_t* old = managed;
  CHECK(((float*)old->tensor.data)[2] == 3);
  old->deleter(old);
  FAILS(XTAPE_ERROR, "'managed' is null", xtape_array_to_dlpack(array, 1, NULL));
  FAILS(XTAPE_HANDLE_ERROR, "'array' is null", xtape_array_to_dlpack(NULL, 1, &managed));
  OK(xtape_release(array));
}

static void dlpack_in(void) {
  _Alignas(64) static float data[] = {1, 2, 3, 4, 5, 6};
  int64_t shape[] = {2, 2}, strides[] = {3, 1};
  versioned_t given = {1, 2, &deleted, count_versioned, 1, {data, 1, 0, 2, 2, 32, 1, shape, strides, 4}};
  xtape_array* array = NULL;
  OK(xtape_array_from_dlpack(&given, 1, &array));
  xtape_view view;
  OK(xtape_array_view(array, &view));
  CHECK(view.data == data + 1 && view.strides[0] == 3 && ((float*)view.data)[view.strides[0]] == 5);
  const char* text = NULL;
  OK(xtape_describe(array, &text));
  CHECK(has(text, "\"writable\":false"));
  xtape_store* store = NULL;
  OK(xtape_store_new(&store));
  FAILS(XTAPE_ERROR, "read-only", xtape_store_set(store, "w", array));
  void* managed = NULL;
  FAILS(XTAPE_ERROR, "read-only", xtape_array_to_dlpack(array, 0, &managed));
  OK(xtape_array_to_dlpack(array, 1, &managed)); /* and out again, still read-only */
  versioned_t* again = managed;
  CHECK(again->flags == 1 && again->tensor.data == data + 1);
  OK(xtape_release(array));
  CHECK(deleted == 0);
  again->deleter(again);
  CHECK(deleted == 1);

  managed_t old = {{data, 1, 0, 1, 2, 32, 1, (int64_t[]){6}, NULL, 0}, &deleted, count_managed};
  OK(xtape_array_from_dlpack(&old, 0, &array));
  OK(xtape_describe(array, &text));
  CHECK(strcmp(text, "{\"dtype\":\"float32\",\"shape\":[6],\"writable\":true}") == 0);
  OK(xtape_store_set(store, "w", array)); /* dense and aligned: without a copy */
  OK(xtape_release(array));
  CHECK(deleted == 1);
  OK(xtape_store_get(store, "w", &array));
  OK(xtape_array_view(array, &view));
  CHECK(view.data == data);
  OK(xtape_release(array));
  OK(xtape_release(store));
  CHECK(deleted == 2);

  given.flags = 0;
  OK(xtape_store_new(&store));
  OK(xtape_array_from_dlpack(&given, 1, &array));
  FAILS(XTAPE_ERROR, "gaps", xtape_store_set(store, "w", array));
  OK(xtape_release(array));
  CHECK(deleted == 3);
  /* What is refused stays with the caller. */
  given.tensor.device = 2;
  FAILS(XTAPE_ERROR, "device", xtape_array_from_dlpack(&given, 1, &array));
  given.tensor.device = 1, given.tensor.code = 1, given.tensor.bits = 8;
  FAILS(XTAPE_DTYPE_ERROR, "code 1 and 8 bits", xtape_array_from_dlpack(&given, 1, &array));
  given.tensor.code = 2, given.tensor.bits = 32, given.tensor.lanes = 4;
  FAILS(XTAPE_DTYPE_ERROR, "", xtape_array_from_dlpack(&given, 1, &array));
  given.tensor.lanes = 1, given.tensor.byte_offset = 2;
  FAILS(XTAPE_ERROR, "aligned", xtape_array_from_dlpack(&given, 1, &array));
  given.major = 2;
  FAILS(XTAPE_ERROR, "version 2", xtape_array_from_dlpack(&given, 1, &array));
  FAILS(XTAPE_ERROR, "'managed' is null", xtape_array_from_dlpack(NULL, 1, &array));
  CHECK(deleted == 3);
  OK(xtape_release(store));
}

static void stores(void) {
  xtape_store *store = NULL, *read = NULL;
  xtape_array* array = NULL;
  OK(xtape_store_new(&store));
  OK(xtape_store_initialise(store, "layer.weight", XTAPE_FLOAT32, 2, SHAPE(3, 4), "{\"normal\": {\"std\": 0.5}}", 7));
  OK(xtape_store_initialise(store, "layer.bias", XTAPE_FLOAT64, 1, SHAPE(4), "\"ones\"", 7));
  OK(xtape_store_initialise(store, "scale", XTAPE_FLOAT32, 0, NULL, "0.25", 7));
  OK(xtape_store_initialise(store, "scale", XTAPE_FLOAT32, 0, NULL, "0.75", 7)); /* exists: unchanged */
  OK(xtape_store_get(store, "scale", &array));
  xtape_view view;
  OK(xtape_array_view(array, &view));
  CHECK(*(float*)view.data == 0.25F);
  OK(xtape_release(array));
  FAILS(XTAPE_SHAPE_ERROR, "'scale' is float32 ()",
        xtape_store_initialise(store, "scale", XTAPE_FLOAT32, 1, SHAPE(1), "0", 7));
  FAILS(XTAPE_ERROR, "gaussian", xtape_store_initialise(store, "a", XTAPE_FLOAT32, 0, NULL, "\"gaussian\"", 7));
  FAILS(XTAPE_DEFINITION_ERROR, "initialiser", xtape_store_initialise(store, "a", XTAPE_FLOAT32, 0, NULL, "{}", 7));
  FAILS(XTAPE_DEFINITION_ERROR, "line 1", xtape_store_initialise(store, "a", XTAPE_FLOAT32, 0, NULL, "{", 7));
  FAILS(XTAPE_DTYPE_ERROR, "", xtape_store_initialise(store, "a", XTAPE_INT32, 0, NULL, "\"ones\"", 7));
  FAILS(XTAPE_ERROR, "'name' is null", xtape_store_initialise(store, NULL, XTAPE_FLOAT32, 0, NULL, "0", 7));
  FAILS(XTAPE_ERROR, "'initialiser' is null", xtape_store_initialise(store, "a", XTAPE_FLOAT32, 0, NULL, NULL, 7));
  FAILS(XTAPE_ERROR, "did you mean 'layer.bias'", xtape_store_get(store, "layer.bais", &array));
  FAILS(XTAPE_ERROR, "UTF-8", xtape_store_get(store, "\xff", &array));
  const char* name = NULL;
  OK(xtape_store_name(store, 1, &name));
  CHECK(strcmp(name, "layer.bias") == 0);
  OK(xtape_store_name(store, 3, &name));
  CHECK(name == NULL);

  OK(xtape_store_save(store, work_path("w.safetensors")));
  OK(xtape_store_load(work_path("w.safetensors"), &read));
  const char* text = NULL;
  OK(xtape_describe(read, &text));
  CHECK(has(text, "\"layer.weight\":{\"dtype\":\"float32\",\"shape\":[3,4]}"));
  FAILS(XTAPE_FILE_ERROR, "none.safetensors", xtape_store_load(work_path("none.safetensors"), &store));
  FAILS(XTAPE_FILE_ERROR, "", xtape_store_save(read, work_path("no_folder/w.safetensors")));
  FAILS(XTAPE_HANDLE_ERROR, "'store'", xtape_store_save(released(), "w"));
  OK(xtape_release(store));
  OK(xtape_release(read));
}

void arrays_tests(void) {
  handles();
  places();
  views();
  dlpack_out();
  dlpack_in();
  stores();
}
