/// Handles of the C interface, and what every function of it does with errors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/json/json_text.hpp"
#include "xtape.h"
#include "xtape/error.hpp"
#include "xtape/site.hpp"

namespace xtape::c {

/// What a handle stands for. Calls with the same handle wait for each other, because they lock the mutex.
class Object {
 public:
  explicit Object(const char* kind) : kind_(kind) {}
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;
  const char* kind() const { return kind_; }        ///< The word of messages: "tape".
  virtual Json describe() const = 0;                ///< For xtape_describe.
  std::recursive_mutex& mutex() { return mutex_; }  ///< Recursive, because callbacks use the handle that they work on.

 private:
  const char* kind_;
  std::recursive_mutex mutex_;
};

/// Makes a handle. Handles are never reused, so a released one is recognised. (A 32-bit process has 2^28 of them.)
void* new_handle(std::shared_ptr<Object> object);
/// Forgets a handle. Throws HandleError if it is none.
void forget(const void* handle);
/// The object of a handle. Throws HandleError with the name of the argument if it is null or no handle.
std::shared_ptr<Object> object_of(const void* handle, const char* argument);
[[noreturn]] void refuse_kind(const Object& object, const char* argument, const char* wanted);

/// An object that no other call uses.
template <class T>
class Used {
 public:
  explicit Used(std::shared_ptr<T> object) : object_(std::move(object)), lock_(object_->mutex()) {}
  T* operator->() const { return object_.get(); }
  T& operator*() const { return *object_; }
  const std::shared_ptr<T>& shared() const { return object_; }

 private:
  std::shared_ptr<T> object_;
  std::unique_lock<std::recursive_mutex> lock_;
};

/// The object of a handle of kind T, not locked. Throws HandleError if the handle has another kind.
template <class T>
std::shared_ptr<T> found(const void* handle, const char* argument) {
  const std::shared_ptr<Object> object = object_of(handle, argument);
  std::shared_ptr<T> typed = std::dynamic_pointer_cast<T>(object);
  if (!typed) refuse_kind(*object, argument, T::word);
  return typed;
}
/// The same, locked. A function with several handles locks them in the order tape, store, array, so that no two calls
/// wait for each other.
template <class T>
Used<T> use(const void* handle, const char* argument) {
  return Used<T>(found<T>(handle, argument));
}

/// Writes a new handle to an argument of type xtape_array**, xtape_tape** …
template <class Handle>
void give(Handle** argument, std::shared_ptr<Object> object) {
  *argument = static_cast<Handle*>(new_handle(std::move(object)));
}

// Arguments.

/// Throws Error if a pointer is null.
void require(const void* pointer, const char* argument);
/// Returns a text. Throws Error if it is null or not UTF-8.
std::string text_of(const char* text, const char* argument);
/// Throws Error if a list of `count` > 0 elements is null.
void require_list(const void* list, std::size_t count, const char* argument);

/// Returns a JSON object of an argument, {} for null. Errors give the name of the function and the line.
JsonNode json_object(const char* text, const char* argument);
/// The text that a function returns: valid until the thread's next one.
const char* returned(const Json& json);

// Errors.

void forget_error();  ///< The text of the thread's last error becomes "".

/// A callback returned another status than XTAPE_OK. Its error is that of the thread.
struct CallbackFailed {
  xtape_status status;
};
/// Calls a callback that returns a status. Throws CallbackFailed unless it is XTAPE_OK.
template <class Callback>
void call_back(const Callback& callback) {
  forget_error();
  if (const xtape_status status = callback(); status != XTAPE_OK) throw CallbackFailed{status};
}

/// The place of the running call in the program (xtape_at).
const Caller& caller();

/// One call of the interface: takes the place of xtape_at, and becomes the place of errors.
class Call {
 public:
  explicit Call(const char* function);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call();
  static const char* function();         ///< The function of the running call.
  xtape_status failed() const noexcept;  ///< In a handler: keeps the text of the error, and returns its kind.

 private:
  const char* function_before_;
  Caller caller_before_;
};

/// Runs the body of a function of the interface. Nothing that the body throws leaves it.
template <class Body>
xtape_status guarded(const char* function, const Body& body) noexcept {
  const Call call(function);
  try {
    body();
    return XTAPE_OK;
  } catch (...) {
    return call.failed();
  }
}

}  // namespace xtape::c
