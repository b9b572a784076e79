/* The C interface of xtape, for programs in C and for languages that call C. The library libxtape-c contains it.
 *
 * Status. Functions return a status, except where they cannot fail. XTAPE_OK is 0. After another status, the call has
 * changed nothing, and xtape_last_error() has the text of the error. No C++ exception leaves the library.
 *
 * Handles. xtape_array, xtape_store, xtape_tape, xtape_player, xtape_step, xtape_optimizer and xtape_model are handles.
 * A handle is a number in the form of a pointer, and nothing is at this address. Every function that gives a handle
 * makes a new one, to be passed to xtape_release() once. Objects keep what they need: a player keeps its tape, an array
 * of a store keeps its elements. A null, released or foreign handle, or one of another kind, is XTAPE_HANDLE_ERROR.
 *
 * Threads. Every function may be called by several threads at once. Calls with the same handle wait for each other.
 * Different handles are independent, with two exceptions. While a player or step of a tape plays, no other thread may
 * record on this tape. While a thread writes the elements of an array, no other thread may use them. The text of an
 * error, and the texts that functions return, belong to the thread that called. A callback runs on the calling thread,
 * and may call any function, except that one of a training cannot train the same run.
 *
 * Views. Any number of views can be held at once. The elements, shape and strides of a view are valid as long as the
 * function that gives it says.
 *
 * Texts are UTF-8 and end with a null character. An argument `options` is a JSON object, or NULL for the defaults.
 * Unknown keys are errors. A null pointer in place of a list of length 0 is valid.
 *
 * docs/how_to/c.md is the page for users. */
#ifndef XTAPE_H
#define XTAPE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__cplusplus)
#define XTAPE_NOEXCEPT noexcept
extern "C" {
#else
#define XTAPE_NOEXCEPT
#endif

/* What a function returns: the kind of the error. */
enum {
  XTAPE_OK = 0,
  XTAPE_ERROR = 1,            /* An argument that has no narrower kind. */
  XTAPE_SHAPE_ERROR = 2,      /* An op does not accept a shape, or no array can have it. */
  XTAPE_DTYPE_ERROR = 3,      /* An op does not accept a dtype, or a dtype cannot hold a number. */
  XTAPE_HANDLE_ERROR = 4,     /* A handle or a var that cannot be used here. */
  XTAPE_DEFINITION_ERROR = 5, /* A mistake in a definition, a recipe or options. */
  XTAPE_FILE_ERROR = 6,       /* A file cannot be read or written, or is damaged. */
  XTAPE_TRAINING_ERROR = 7,   /* An update or evaluation would not be finite. Nothing has changed. */
  XTAPE_MEMORY_ERROR = 8,     /* There is not enough memory, or a plan exceeds its limit. */
  XTAPE_CALLBACK_ERROR = 9    /* A callback returned a status other than XTAPE_OK. */
};
typedef int32_t xtape_status;

/* The types of elements. The last five are the block formats of GGUF files: views of them have the bytes of the blocks
 * and no strides. */
enum {
  XTAPE_FLOAT32 = 0,
  XTAPE_FLOAT64 = 1,
  XTAPE_BFLOAT16 = 2,
  XTAPE_FLOAT16 = 3,
  XTAPE_INT32 = 4,
  XTAPE_INT64 = 5,
  XTAPE_INT8 = 6,
  XTAPE_BOOL = 7, /* Bytes that are 0 or 1. */
  XTAPE_Q8_0 = 8,
  XTAPE_Q4_0 = 9,
  XTAPE_Q4_K = 10,
  XTAPE_Q5_K = 11,
  XTAPE_Q6_K = 12
};
typedef int32_t xtape_dtype;
enum { XTAPE_MAX_RANK = 10 }; /* The most axes of an array. */

typedef struct xtape_array xtape_array;         /* An array, or a view that keeps its memory alive. */
typedef struct xtape_store xtape_store;         /* Arrays by name: weights, gradients, results. */
typedef struct xtape_tape xtape_tape;           /* A recorded computation. */
typedef struct xtape_player xtape_player;       /* A compiled computation. */
typedef struct xtape_step xtape_step;           /* A training step. */
typedef struct xtape_optimizer xtape_optimizer; /* The optimiser alone, for gradients from elsewhere. */
typedef struct xtape_model xtape_model;         /* A model from a definition, a folder or file of weights, or a run. */

/* A value on a tape. It is plain data, needs no release, and may be copied. All members are 0 if there is no value. */
typedef struct xtape_var {
  uint32_t tape, serial; /* The tape and the node. */
  int32_t node, output;  /* The index of the node and of its output. */
} xtape_var;

/* Elements in memory. `strides` are in elements, and may be 0 or negative; NULL means row-major without gaps. */
typedef struct xtape_view {
  void* data; /* The element with all indices 0. Functions that take a view only read its elements. */
  xtape_dtype dtype;
  int32_t rank;
  const int64_t* shape;
  const int64_t* strides;
} xtape_view;

/* Records on the tape of `inputs`. Writes at most `capacity` results, and their number. */
typedef xtape_status (*xtape_function)(void* context, const xtape_var* inputs, size_t count, xtape_var* results,
                                       size_t capacity, size_t* result_count);

/* ---- Errors, handles, descriptions ---- */

/* The version of the library, "0.2.0". */
const char* xtape_version(void) XTAPE_NOEXCEPT;
/* The text of the last error of the calling thread, with op, file and line, or "". Valid until its next error. */
const char* xtape_last_error(void) XTAPE_NOEXCEPT;
/* Says where the next call of this thread stands in the program. Its error, and later errors about the nodes that it
 * records, give this place. XTAPE_HERE(call) gives the place of a call in C. */
void xtape_at(const char* file, int32_t line) XTAPE_NOEXCEPT;
#define XTAPE_HERE(call) (xtape_at(__FILE__, __LINE__), (call))
/* Releases a handle of any kind. Another thread may still be using the object. NULL is valid. */
xtape_status xtape_release(void* handle) XTAPE_NOEXCEPT;
/* Describes an object of any kind as a JSON text: dtype and shape of an array, the plan of a player, the functions of a
 * model. The text is valid until the thread's next call that returns a text. */
xtape_status xtape_describe(const void* handle, const char** json) XTAPE_NOEXCEPT;
/* The ops as a JSON text: for each name its inputs, attributes with types and defaults, outputs and meaning. */
xtape_status xtape_op_table(const char** json) XTAPE_NOEXCEPT;

/* ---- Arrays ---- */

/* Makes an array with a copy of the elements. If values->data is NULL, the elements are zeros. */
xtape_status xtape_array_new(const xtape_view* values, xtape_array** array) XTAPE_NOEXCEPT;
/* Gives the elements of an array, without a copy, to read and, if xtape_describe says "writable": true, to write. Valid
 * until the handle is released. */
xtape_status xtape_array_view(const xtape_array* array, xtape_view* view) XTAPE_NOEXCEPT;
/* Takes a DLManagedTensorVersioned (versioned = 1) or a DLManagedTensor (versioned = 0) of the CPU, without a copy. The
 * array calls its deleter. After an error, the caller still owns it. */
xtape_status xtape_array_from_dlpack(void* managed, int32_t versioned, xtape_array** array) XTAPE_NOEXCEPT;
/* Gives the elements to another library, without a copy. The receiver calls the deleter of the result, and until then
 * keeps what the array keeps. A read-only array needs versioned = 1. */
xtape_status xtape_array_to_dlpack(const xtape_array* array, int32_t versioned, void** managed) XTAPE_NOEXCEPT;

/* Makes a store without arrays. */
xtape_status xtape_store_new(xtape_store** store) XTAPE_NOEXCEPT;
/* Adds an array, or replaces the array of this name. The store shares its elements. They must be writable, row-major
 * without gaps, and aligned to 64 bytes, as those of xtape_array_new and of PyTorch are. */
xtape_status xtape_store_set(xtape_store* store, const char* name, const xtape_array* array) XTAPE_NOEXCEPT;
/* Gives the array of this name. The error for an unknown name suggests the nearest one. */
xtape_status xtape_store_get(const xtape_store* store, const char* name, xtape_array** array) XTAPE_NOEXCEPT;
/* Gives the name of an entry, in the order of insertion; NULL if the store has no more. Valid until the store changes
 * or is released. */
xtape_status xtape_store_name(const xtape_store* store, size_t index, const char** name) XTAPE_NOEXCEPT;
/* Adds a float array with initial values, unless the store has an array of this name already, which must then have this
 * type. `initialiser` is a JSON text: "\"zeros\"", or {"normal": {"std": 0.02}} with the names that definitions use.
 * Seed and name determine the numbers. */
xtape_status xtape_store_initialise(xtape_store* store, const char* name, xtape_dtype dtype, int32_t rank,
                                    const int64_t* shape, const char* initialiser, uint64_t seed) XTAPE_NOEXCEPT;
/* Reads, and writes, a safetensors file. */
xtape_status xtape_store_load(const char* path, xtape_store** store) XTAPE_NOEXCEPT;
xtape_status xtape_store_save(const xtape_store* store, const char* path) XTAPE_NOEXCEPT;

/* ---- Tapes ---- */

/* Makes a tape. Options: "mode" ("train", "eval", "predict") and "dtype" ("float32", "float64": the default dtype). */
xtape_status xtape_tape_new(const char* options, xtape_tape** tape) XTAPE_NOEXCEPT;
/* Reads a saved tape. Arrays of `weights` replace parameters of the same names; NULL: none. */
xtape_status xtape_tape_load(const char* path, const xtape_store* weights, xtape_tape** tape) XTAPE_NOEXCEPT;
/* Writes a tape and its named outputs to a folder. */
xtape_status xtape_tape_save(const xtape_tape* tape, const char* path, const char* const* names,
                             const xtape_var* outputs, size_t count) XTAPE_NOEXCEPT;
/* Finds an input or parameter by name, and in a tape from a file an output. */
xtape_status xtape_var_named(const xtape_tape* tape, const char* name, xtape_var* var) XTAPE_NOEXCEPT;
/* Gives dtype, rank and sizes of a value. `shape` has room for XTAPE_MAX_RANK sizes. */
xtape_status xtape_var_type(const xtape_tape* tape, xtape_var var, xtape_dtype* dtype, int32_t* rank,
                            int64_t* shape) XTAPE_NOEXCEPT;
/* Records an input, to be fed at every play. */
xtape_status xtape_input(xtape_tape* tape, const char* name, xtape_dtype dtype, int32_t rank, const int64_t* shape,
                         xtape_var* var) XTAPE_NOEXCEPT;
/* Records an array of a store as a parameter: every play reads its current elements. The same array is the same var. */
xtape_status xtape_parameter(xtape_tape* tape, const xtape_store* store, const char* name,
                             xtape_var* var) XTAPE_NOEXCEPT;
/* Records a constant, a copy of the elements. */
xtape_status xtape_constant(xtape_tape* tape, const xtape_view* values, xtape_var* var) XTAPE_NOEXCEPT;
/* A number as an operand of xtape_op, which takes the dtype of the other operands, as numbers in Python do. */
xtape_var xtape_number(double value) XTAPE_NOEXCEPT;
xtape_var xtape_integer(int64_t value) XTAPE_NOEXCEPT;
/* Records a call of the op `name`. `attributes` is a JSON object with values such as true, 3, 0.5, "text", [1, 2],
 * "float32" for a dtype and {"h": 2} for named sizes; NULL: none. Writes the results to `results`, which has room for
 * `capacity`, and their number to `count`. If `count` is NULL, there must be exactly `capacity` results. */
xtape_status xtape_op(xtape_tape* tape, const char* name, const xtape_var* operands, size_t operand_count,
                      const char* attributes, xtape_var* results, size_t capacity, size_t* count) XTAPE_NOEXCEPT;

/* ---- Derivatives, batches, loops: all are nodes of the same tape ---- */

/* Records gradients of the outputs, one for each input. `cotangents` has one for each output, or is NULL for outputs
 * with one element. Options: "allow_unused", "materialize_grads", "sum_outputs", as in torch.autograd.grad. */
xtape_status xtape_grad(xtape_tape* tape, const xtape_var* outputs, size_t output_count, const xtape_var* inputs,
                        size_t input_count, const xtape_var* cotangents, const char* options,
                        xtape_var* gradients) XTAPE_NOEXCEPT;
/* Records the tangents of the outputs, given one tangent for each input. */
xtape_status xtape_jvp(xtape_tape* tape, const xtape_var* outputs, size_t output_count, const xtape_var* inputs,
                       size_t input_count, const xtape_var* tangents, xtape_var* results) XTAPE_NOEXCEPT;
/* Records the Jacobian of `output` with respect to each input: the shape of the output, then that of the input.
 * Options: "mode" ("automatic", "forward", "reverse"), "chunk_size". */
xtape_status xtape_jacobian(xtape_tape* tape, xtape_var output, const xtape_var* inputs, size_t input_count,
                            const char* options, xtape_var* jacobians) XTAPE_NOEXCEPT;
/* Records the Hessian of an output with one element. Options as above. */
xtape_status xtape_hessian(xtape_tape* tape, xtape_var output, xtape_var input, const char* options,
                           xtape_var* hessian) XTAPE_NOEXCEPT;
/* Records `function` of one example for a batch of examples, as jax.vmap. Options: "in_axes" (a list of integers and
 * null), "out_axes", "randomness" ("different", "same"). */
xtape_status xtape_vmap(xtape_tape* tape, xtape_function function, void* context, const xtape_var* inputs,
                        size_t input_count, const char* options, xtape_var* results, size_t capacity,
                        size_t* count) XTAPE_NOEXCEPT;
/* Records a loop over an axis. `cell` gets the slices of the inputs, then the states. It returns the outputs of the
 * step, then the next states. The results are the stacked outputs, then the last states. Options: "axis" (1),
 * "reverse", "checkpoint_every" (a list). */
xtape_status xtape_scan(xtape_tape* tape, xtape_function cell, void* context, const xtape_var* inputs,
                        size_t input_count, const xtape_var* states, size_t state_count, const char* options,
                        xtape_var* results, size_t capacity, size_t* count) XTAPE_NOEXCEPT;
/* Records `function` so that gradients recompute its values instead of keeping them. */
xtape_status xtape_checkpoint(xtape_tape* tape, xtape_function function, void* context, const xtape_var* inputs,
                              size_t input_count, xtape_var* results, size_t capacity, size_t* count) XTAPE_NOEXCEPT;

/* ---- Players ---- */

/* Compiles the computation of outputs. carries[2 i + 1] is an output whose value after a play becomes the value of the
 * input carries[2 i] for the next play; both have one type. Options: "threads", "seed", "precision" ("float32",
 * "bf16x3", "bf16", "int8", "int8_training"), "bits" ("usual", "same", "fast"), "memory" (bytes), "reference" (true:
 * slow, exact passes). */
xtape_status xtape_player_new(const xtape_tape* tape, const xtape_var* outputs, size_t output_count,
                              const xtape_var* carries, size_t carry_count, const char* options,
                              xtape_player** player) XTAPE_NOEXCEPT;
/* Computes the outputs. values[i] is copied to inputs[i]. Allocates nothing after the first play. */
xtape_status xtape_play(xtape_player* player, const xtape_var* inputs, const xtape_view* values,
                        size_t count) XTAPE_NOEXCEPT;
/* Gives output `index` of the last play, without a copy. Valid until the next play, or the release of the player. */
xtape_status xtape_player_view(const xtape_player* player, size_t index, xtape_view* view) XTAPE_NOEXCEPT;
/* The same as an array, which keeps the player. Later plays write its elements. */
xtape_status xtape_player_array(const xtape_player* player, size_t index, xtape_array** array) XTAPE_NOEXCEPT;
/* Gives the state of a carry, the value of `input` at the next play, to read and to write. Initially zeros. Valid until
 * the next play, or the release of the player. */
xtape_status xtape_player_carried(xtape_player* player, xtape_var input, xtape_view* view) XTAPE_NOEXCEPT;
/* Sets the random step of the next play. Seed and step determine all random numbers of a play. */
xtape_status xtape_player_set_step(xtape_player* player, uint64_t random_step) XTAPE_NOEXCEPT;

/* ---- Updates of parameters ---- */

/* Makes a training step for the arrays of `weights` that the loss, results[0], reads as parameters. Further results are
 * values to view. Options: "optimizer" (a section of recipes: {"kind": "adamw", "groups": …}), "schedule" (a section of
 * recipes, or a number: a constant rate), "clip" (the global norm), and those of players. */
xtape_status xtape_step_new(xtape_tape* tape, const xtape_var* results, size_t result_count, const xtape_store* weights,
                            const char* options, xtape_step** step) XTAPE_NOEXCEPT;
/* Plays the loss and its gradients, and updates the weights. `loss` gets the loss before the update; NULL: not wanted.
 * If the loss or a gradient is not finite: XTAPE_TRAINING_ERROR. */
xtape_status xtape_step_update(xtape_step* step, const xtape_var* inputs, const xtape_view* values, size_t count,
                               double* loss) XTAPE_NOEXCEPT;
/* Gives a result of the last update. Valid until the next one, or the release of the step. */
xtape_status xtape_step_view(const xtape_step* step, size_t result, xtape_view* view) XTAPE_NOEXCEPT;
/* Makes an optimiser for the arrays of a store. Options: those of a section `optimizer` of recipes. */
xtape_status xtape_optimizer_new(const xtape_store* weights, const char* options,
                                 xtape_optimizer** optimizer) XTAPE_NOEXCEPT;
/* Makes an update with one dense gradient for each array, in the order of the store; a view without data leaves its
 * array unchanged. If clip > 0, gradients are clipped to this global norm. `norm` gets the norm before clipping, or is
 * NULL. */
xtape_status xtape_optimizer_update(xtape_optimizer* optimizer, const xtape_view* gradients, size_t count, double rate,
                                    double clip, double* norm) XTAPE_NOEXCEPT;
/* Gives the moments of a step or an optimiser. To continue from a file, write to these arrays. */
xtape_status xtape_state(const void* handle, xtape_store** state) XTAPE_NOEXCEPT;

/* ---- Models ---- */

/* Opens a model. `source` is the name or path of a definition, the text of a definition (it begins with "{"), a folder
 * of the Hugging Face Hub, a GGUF file, an ONNX file, or the folder of a run. Options: "hyper" (an object), "seed" and
 * "dtype" for definitions, "weights" (the dtype of stored weights) for folders; "floats" for ONNX files; "settings" (as
 * below) and "checkpoint" ("last", "best", the number of a step) for runs; "resume" (true) to continue the training of
 * a run; and those of players. */
xtape_status xtape_model_open(const char* source, const char* options, xtape_model** model) XTAPE_NOEXCEPT;
/* Gives the weights by path. The store shares their elements with the model. */
xtape_status xtape_weights(const xtape_model* model, xtape_store** weights) XTAPE_NOEXCEPT;
/* Records the inputs of a function, in the order of its signature. `sizes` is a JSON object with its sizes by name. A
 * model from an ONNX file has one function, NULL. */
xtape_status xtape_model_inputs(const xtape_model* model, xtape_tape* tape, const char* function, const char* sizes,
                                xtape_var* inputs, size_t capacity, size_t* count) XTAPE_NOEXCEPT;
/* Records a function. Weights become parameters, which xtape_parameter(tape, weights, name, …) finds. */
xtape_status xtape_model_record(const xtape_model* model, xtape_tape* tape, const char* function,
                                const xtape_var* inputs, size_t input_count, xtape_var* results, size_t capacity,
                                size_t* count) XTAPE_NOEXCEPT;
/* Plays a function on arrays by the names of its inputs. `mode` as of tapes; NULL: "eval". Each combination of shapes
 * is compiled once. Gives copies of the results. */
xtape_status xtape_model_play(xtape_model* model, const char* function, const char* mode, const char* const* names,
                              const xtape_view* values, size_t count, xtape_store** results) XTAPE_NOEXCEPT;
/* Reads weights from a safetensors file into the arrays of the model. */
xtape_status xtape_model_load_weights(xtape_model* model, const char* path) XTAPE_NOEXCEPT;
/* Writes a model. The end of `path` decides: ".safetensors" (weights only), ".gguf", ".onnx" (the file from which the
 * model was opened, with its current weights), else a folder of the Hugging Face Hub. Options: "like" (a folder with
 * tokenizers and config), "format" of GGUF files ("F32", "Q8_0" …), "weights" (the dtype) of folders. */
xtape_status xtape_model_save(const xtape_model* model, const char* path, const char* options) XTAPE_NOEXCEPT;
/* Continues a prompt, and calls `each` with every new token and the text that it completes, which may be "". `each`
 * returns 0 to go on; after another value, it is not called again. Options: "tokens" (100), "temperature", "top_k",
 * "top_p", "seed", "context", and "prompt", a list of tokens, if `prompt` is NULL, for models without a tokenizer,
 * whose texts are "". */
xtape_status xtape_generate(xtape_model* model, const char* prompt, const char* options,
                            int32_t (*each)(void* context, int32_t token, const char* text),
                            void* context) XTAPE_NOEXCEPT;
/* Writes the computation of outputs as an ONNX file. Options: "opset" (18). */
xtape_status xtape_onnx_save(const xtape_tape* tape, const char* path, const char* const* names,
                             const xtape_var* outputs, size_t count, const char* options) XTAPE_NOEXCEPT;

/* ---- Runs: trainings from recipes, in folders. A run is a model with data. ---- */

/* Makes the folder of a new run. `recipe` is the name or path of a recipe, or its text (it begins with "{", and its
 * paths are relative to the working directory). `settings` is a JSON object of dotted keys: {"steps": 100,
 * "data.text": "a.txt"}. */
xtape_status xtape_run_new(const char* recipe, const char* settings, const char* folder,
                           xtape_model** run) XTAPE_NOEXCEPT;
/* Trains a run to the end of its recipe, or continues it. Calls `each` after every update; a value other than 0 ends
 * the training with a checkpoint. `each` may be NULL. `finished` gets 1 at the end of the recipe, else 0; it may be
 * NULL. */
xtape_status xtape_train(xtape_model* run, int32_t (*each)(void* context, int64_t update, double loss), void* context,
                         int32_t* finished) XTAPE_NOEXCEPT;
/* Evaluates a run on its validation split. Gives the measures as a JSON object, that of a line of metrics.jsonl. */
xtape_status xtape_evaluate(xtape_model* run, const char** json) XTAPE_NOEXCEPT;

#if defined(__cplusplus)
}
#endif
#endif /* XTAPE_H */
