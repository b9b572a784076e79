#include "c/handles.hpp"

#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <shared_mutex>
#include <unordered_map>

#include "data/tokenizers/utf8.hpp"
#include "xtape/optim.hpp"
#include "xtape/player.hpp"
#include "xtape/trainer.hpp"

namespace xtape::c {

namespace {
struct Table {
  std::shared_mutex mutex;
  std::unordered_map<std::uintptr_t, std::shared_ptr<Object>> objects;
  std::uintptr_t next = 1;
};
/// Never destroyed, because other threads may use handles until the process ends.
Table& table() {
  static auto* const made = new Table;
  return *made;
}

struct Thread {
  const char* function = "";
  Caller caller = {}, next_caller = {};
  std::string error, text;
};
Thread& thread() {
  thread_local Thread of_thread;
  return of_thread;
}

/// Returns a copy of the text that lives as long as the process, because sites keep pointers to names of files.
const char* lasting(const char* text) {
  thread_local const char* last = nullptr;
  if (last != nullptr && std::strcmp(last, text) == 0) return last;
  static std::mutex mutex;
  static auto* const texts = new std::set<std::string>;
  const std::lock_guard<std::mutex> lock(mutex);
  return last = texts->insert(text).first->c_str();
}

xtape_status status_of(const Error& error) {
  if (dynamic_cast<const ShapeError*>(&error) != nullptr) return XTAPE_SHAPE_ERROR;
  if (dynamic_cast<const DtypeError*>(&error) != nullptr) return XTAPE_DTYPE_ERROR;
  if (dynamic_cast<const HandleError*>(&error) != nullptr) return XTAPE_HANDLE_ERROR;
  if (dynamic_cast<const DefinitionError*>(&error) != nullptr) return XTAPE_DEFINITION_ERROR;
  if (dynamic_cast<const FileError*>(&error) != nullptr) return XTAPE_FILE_ERROR;
  if (dynamic_cast<const MemoryError*>(&error) != nullptr) return XTAPE_MEMORY_ERROR;
  if (dynamic_cast<const UpdateError*>(&error) != nullptr) return XTAPE_TRAINING_ERROR;
  if (dynamic_cast<const TrainingError*>(&error) != nullptr) return XTAPE_TRAINING_ERROR;
  return XTAPE_ERROR;
}
}  // namespace

void* new_handle(std::shared_ptr<Object> object) {
  Table& all = table();
  const std::unique_lock<std::shared_mutex> lock(all.mutex);
  const std::uintptr_t handle = all.next++ << 4U;
  all.objects.emplace(handle, std::move(object));
  return reinterpret_cast<void*>(handle);  // NOLINT(performance-no-int-to-ptr): a number, never dereferenced
}

void forget(const void* handle) {
  if (handle == nullptr) return;
  Table& all = table();
  std::shared_ptr<Object> last;  // destroyed after the lock: an object may hold callbacks that use handles
  const std::unique_lock<std::shared_mutex> lock(all.mutex);
  const auto found = all.objects.find(reinterpret_cast<std::uintptr_t>(handle));
  if (found == all.objects.end()) throw HandleError("this is no handle of xtape, or it has been released before");
  last = std::move(found->second);
  all.objects.erase(found);
}

std::shared_ptr<Object> object_of(const void* handle, const char* argument) {
  if (handle == nullptr) throw HandleError("'" + std::string(argument) + "' is null");
  Table& all = table();
  const std::shared_lock<std::shared_mutex> lock(all.mutex);
  const auto found = all.objects.find(reinterpret_cast<std::uintptr_t>(handle));
  if (found == all.objects.end())
    throw HandleError("'" + std::string(argument) + "' is no handle of xtape, or it has been released");
  return found->second;
}

void refuse_kind(const Object& object, const char* argument, const char* wanted) {
  throw HandleError("'" + std::string(argument) + "' must be a handle of " + wanted + ", not of " + object.kind());
}

void require(const void* pointer, const char* argument) {
  if (pointer == nullptr) throw Error("'" + std::string(argument) + "' is null");
}

std::string text_of(const char* text, const char* argument) {
  require(text, argument);
  try {
    check_utf8(text);
  } catch (const Error& error) {
    throw Error("'" + std::string(argument) + "': " + error.what());
  }
  return text;
}

void require_list(const void* list, std::size_t count, const char* argument) {
  if (count > 0) require(list, argument);
}

JsonNode json_object(const char* text, const char* argument) {
  const JsonNode node(text == nullptr ? "{}" : text, std::string(argument) + " of " + Call::function(),
                      JsonErrors::definition);
  if (!node.is_object()) node.fail("an object belongs here, such as {}");
  return node;
}

const char* returned(const Json& json) {
  std::string& text = thread().text;
  text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.c_str();
}

void forget_error() {
  thread().error.clear();
}

const Caller& caller() {
  return thread().caller;
}

Call::Call(const char* function) : function_before_(thread().function), caller_before_(thread().caller) {
  thread().function = function;
  thread().caller = std::exchange(thread().next_caller, Caller{});
}
Call::~Call() {
  thread().function = function_before_;
  thread().caller = caller_before_;
}
const char* Call::function() {
  return thread().function;
}

xtape_status Call::failed() const noexcept {
  std::string& text = thread().error;
  try {
    try {
      throw;
    } catch (const CallbackFailed& callback) {
      const bool known = callback.status > XTAPE_OK && callback.status <= XTAPE_CALLBACK_ERROR && !text.empty();
      if (text.empty()) text = std::string(function()) + ": the callback returned " + std::to_string(callback.status);
      return known ? callback.status : XTAPE_CALLBACK_ERROR;
    } catch (Error& error) {
      const Caller& at = caller();
      error.name_op(function());
      if (at.known()) error.name_location(to_string(at), at.file, at.line);
      text = error.what();
      return status_of(error);
    } catch (const std::bad_alloc&) {
      text = std::string(function()) + ": out of memory";
      return XTAPE_MEMORY_ERROR;
    } catch (const std::exception& error) {
      text = std::string(function()) + ": " + error.what();
      return XTAPE_ERROR;
    } catch (...) {
      text = std::string(function()) + ": an unknown exception";
      return XTAPE_ERROR;
    }
  } catch (...) {
    text.clear();  // no memory is left for a text
    return XTAPE_MEMORY_ERROR;
  }
}

}  // namespace xtape::c

using namespace xtape::c;

const char* xtape_version(void) noexcept {
  return XTAPE_VERSION;
}

const char* xtape_last_error(void) noexcept {
  return thread().error.c_str();
}

void xtape_at(const char* file, int32_t line) noexcept {
  try {
    thread().next_caller = file == nullptr ? xtape::Caller{} : xtape::Caller{lasting(file), line};
  } catch (const std::bad_alloc&) {
    thread().next_caller = {};
  }
}

xtape_status xtape_release(void* handle) noexcept {
  return guarded("xtape_release", [&] { forget(handle); });
}

xtape_status xtape_describe(const void* handle, const char** json) noexcept {
  return guarded("xtape_describe", [&] {
    require(json, "json");
    const Used<Object> object(object_of(handle, "handle"));
    *json = returned(object->describe());
  });
}
