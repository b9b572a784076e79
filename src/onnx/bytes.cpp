#include "onnx/bytes.hpp"

#include <cstring>
#include <exception>
#include <mutex>

#include "base/memory/process_memory.hpp"
#include "base/threads/threads.hpp"

namespace xtape::onnx {

namespace {
// a multiple of the size of a huge page, so that no two threads share one
constexpr std::int64_t piece = std::int64_t{4} << 20;
}  // namespace

void read_pieces(const OpenFile& file, std::uint64_t offset, void* to, std::size_t count) {
  std::exception_ptr failure;
  std::mutex mutex;
  parallel_for(thread_count(), static_cast<std::int64_t>(count), piece, [&](std::int64_t begin, std::int64_t finish) {
    try {
      file.read(offset + static_cast<std::uint64_t>(begin), static_cast<char*>(to) + begin,
                static_cast<std::size_t>(finish - begin));
    } catch (...) {
      const std::lock_guard<std::mutex> lock(mutex);
      failure = std::current_exception();
    }
  });
  if (failure) std::rethrow_exception(failure);
}

void copy_pieces(void* to, const void* from, std::size_t count) {
  parallel_for(thread_count(), static_cast<std::int64_t>(count), piece, [&](std::int64_t begin, std::int64_t finish) {
    std::memcpy(static_cast<char*>(to) + begin, static_cast<const char*>(from) + begin,
                static_cast<std::size_t>(finish - begin));
  });
}

Array file_bytes(const std::string& path) {
  const OpenFile file(path);
  require_memory_left(static_cast<std::size_t>(file.size()), "'" + path + "'");
  Array bytes(Dtype::int8, {std::ssize(file)});
  read_pieces(file, 0, bytes.data(), static_cast<std::size_t>(file.size()));
  return bytes;
}

}  // namespace xtape::onnx
