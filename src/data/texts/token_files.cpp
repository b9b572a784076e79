#include "data/texts/token_files.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>

#include "base/arrays/npy.hpp"
#include "base/arrays/safetensors_header.hpp"
#include "base/bytes/encodings.hpp"
#include "base/system/durable.hpp"
#include "base/system/process_memory.hpp"
#include "base/system/system.hpp"
#include "data/texts/texts.hpp"
#include "xtape/error.hpp"

namespace xtape {

namespace {
constexpr std::int64_t read_at_once = 4096;  // number of tokens that are converted at once

/// The tokens of an open file.
class TokenFile final : public TokenSequence {
 public:
  TokenFile(std::shared_ptr<const OpenFile> file, const Stored& stored, std::uint64_t first, std::int64_t size)
      : file_(std::move(file)), stored_(stored), first_(first), size_(size) {}
  std::int64_t size() const override { return size_; }
  void read(std::int64_t begin, std::int64_t count, std::int64_t* to) const override {
    for (std::int64_t at = 0; at < count; at += read_at_once)
      read_piece(begin + at, std::min(read_at_once, count - at), to + at);
  }

 private:
  void read_piece(std::int64_t begin, std::int64_t count, std::int64_t* to) const {
    std::array<std::byte, read_at_once * sizeof(std::int64_t)> bytes;
    std::array<std::int32_t, read_at_once> narrow;
    const auto number = static_cast<std::size_t>(count) * stored_.bytes;
    file_->read(first_ + static_cast<std::uint64_t>(begin) * stored_.bytes, bytes.data(), number);
    const bool is_wide = stored_.dtype == Dtype::int64;
    void* const made = is_wide ? static_cast<void*>(to) : narrow.data();
    if (stored_.convert != nullptr)
      stored_.convert(bytes.data(), made, count);
    else
      std::memcpy(made, bytes.data(), number);
    if (!is_wide) std::copy_n(narrow.begin(), count, to);
  }

  std::shared_ptr<const OpenFile> file_;
  const Stored& stored_;
  std::uint64_t first_;
  std::int64_t size_;
};

/// Several sequences, one after the other, from the token `begin_` on.
class Part final : public TokenSequence {
 public:
  Part(std::vector<std::shared_ptr<const TokenSequence>> parts, std::int64_t begin, std::int64_t end)
      : parts_(std::move(parts)), begin_(begin), end_(end) {}
  std::int64_t size() const override { return end_ - begin_; }
  void read(std::int64_t begin, std::int64_t count, std::int64_t* to) const override {
    begin += begin_;
    for (const auto& part : parts_) {
      const std::int64_t here = std::clamp<std::int64_t>(part->size() - begin, 0, count);
      if (here > 0) part->read(begin, here, to);
      begin = std::max<std::int64_t>(0, begin - part->size());
      to += here;
      count -= here;
    }
  }

 private:
  std::vector<std::shared_ptr<const TokenSequence>> parts_;
  std::int64_t begin_, end_;
};

constexpr std::string_view npy_mark = "\x93NUMPY";
// llm.c's files begin with 256 numbers of 4 bytes: this number, the version, and the number of tokens.
constexpr std::int32_t llm_c_mark = 20240520;
constexpr std::size_t llm_c_header = 1024;

struct FileStart {
  std::int32_t numbers[3] = {};
  bool is_npy() const { return std::memcmp(numbers, npy_mark.data(), npy_mark.size()) == 0; }
  bool is_llm_c() const { return numbers[0] == llm_c_mark; }
};

FileStart start_of(const OpenFile& file) {
  FileStart start;
  file.read(0, start.numbers, std::min<std::size_t>(sizeof start.numbers, file.size()));
  return start;
}

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw FileError("cannot read '" + path + "': " + why);
}

std::shared_ptr<const TokenSequence> open_npy(const std::shared_ptr<const OpenFile>& file, const std::string& path) {
  const NpyHeader header = read_npy_header(
      {file->size(), [&](std::uint64_t at, void* to, std::size_t count) { file->read(at, to, count); }}, path);
  const Dtype dtype = header.stored->dtype;
  if ((dtype != Dtype::int32 && dtype != Dtype::int64) || header.shape.size() != 1)
    refuse(path, "tokens must be integers along one axis, not " + std::string(name_of(dtype)) + " " +
                     to_string(header.shape));
  return std::make_shared<TokenFile>(file, *header.stored, header.elements, header.shape[0]);
}

std::shared_ptr<const TokenSequence> open_llm_c(const std::shared_ptr<const OpenFile>& file, const FileStart& start,
                                                const std::string& path) {
  const std::int32_t version = start.numbers[1];
  const std::int64_t tokens = start.numbers[2];
  if (version != 1 && version != 2)
    refuse(path, "it has version " + std::to_string(version) + " of llm.c's files; 1 and 2 are known");
  const Stored& stored = *stored_type(version == 1 ? "U16" : "U32");
  const std::uint64_t wanted = llm_c_header + static_cast<std::uint64_t>(tokens) * stored.bytes;
  if (tokens < 0 || file->size() != wanted)
    refuse(path, "its header says " + std::to_string(tokens) + " tokens, which with it take " + std::to_string(wanted) +
                     " bytes, but it has " + std::to_string(file->size()));
  return std::make_shared<TokenFile>(file, stored, llm_c_header, tokens);
}

/// Returns the type that safetensors calls U16 and recipes "uint16".
const Stored& raw_type(const std::string& type) {
  std::string name(1, type[0] == 'u' ? 'U' : 'I');
  name += type.substr(type.find_first_of("0123456789"));
  return *stored_type(name);
}
}  // namespace

bool is_token_file(const std::string& path) {
  if (!is_plain_file(path)) return false;
  const FileStart start = start_of(OpenFile(path));
  return start.is_npy() || start.is_llm_c();
}

std::shared_ptr<const TokenSequence> open_tokens(const std::string& path, const TokenFileOptions& options) {
  const auto file = std::make_shared<const OpenFile>(path);
  const FileStart start = start_of(*file);
  if (start.is_npy()) return open_npy(file, path);
  if (options.type.empty()) return open_llm_c(file, start, path);
  const Stored& stored = raw_type(options.type);
  const auto skip = static_cast<std::uint64_t>(options.skip);
  if (file->size() < skip) refuse(path, "it has " + std::to_string(file->size()) + " bytes, fewer than skip_bytes");
  const std::uint64_t bytes = file->size() - skip;
  if (bytes % stored.bytes != 0)
    refuse(path, std::to_string(bytes) + " bytes are no whole number of tokens of type " + options.type +
                     ": the file is truncated, or of another type");
  return std::make_shared<TokenFile>(file, stored, skip, static_cast<std::int64_t>(bytes / stored.bytes));
}

TokenFacts facts_of(const TokenSequence& tokens, const std::string& name) {
  constexpr std::int64_t checked = checksum_piece / static_cast<std::int64_t>(sizeof(std::int64_t));
  InputWatch watch(name, "checking");
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(checked));
  std::vector<std::uint64_t> checksums;
  TokenFacts facts;
  for (std::int64_t at = 0; at < tokens.size(); at += checked) {
    const std::int64_t count = std::min(checked, tokens.size() - at);
    tokens.read(at, count, numbers.data());
    const auto end = numbers.begin() + count;
    const auto most = std::max_element(numbers.begin(), end), least = std::min_element(numbers.begin(), end);
    if (*most > facts.most && facts.least == 0) facts.place = at + (most - numbers.begin());
    if (*least < facts.least) facts.place = at + (least - numbers.begin());
    facts.most = std::max(facts.most, *most);
    facts.least = std::min(facts.least, *least);
    checksums.push_back(checksum_of_piece(numbers.data(), static_cast<std::size_t>(count) * sizeof numbers[0]));
    watch.add(static_cast<std::size_t>(count) * sizeof numbers[0]);
  }
  facts.checksum = checksum_of_pieces(checksums);
  return facts;
}

std::shared_ptr<const TokenSequence> part_of_joined(std::vector<std::shared_ptr<const TokenSequence>> parts,
                                                    std::int64_t begin, std::int64_t end) {
  return std::make_shared<Part>(std::move(parts), begin, end);
}

namespace {
constexpr std::size_t npy_header = 128;
constexpr std::size_t at_once = std::size_t{1} << 18;  // tokens that are written at once

}  // namespace

TokenWriter::TokenWriter(std::string path, std::int64_t vocabulary, std::size_t held)
    : path_(std::move(path)),
      is_temporary_(path_.empty()),
      bytes_(vocabulary <= 1 << 8    ? 1
             : vocabulary <= 1 << 16 ? 2
                                     : 4),
      most_held_(held) {}

TokenWriter::~TokenWriter() = default;

void TokenWriter::add(const std::int32_t* tokens, std::size_t count) {
  held_.insert(held_.end(), tokens, tokens + count);
  if (held_.size() <= (file_ ? at_once : most_held_)) return;
  if (!file_) {
    if (is_temporary_) path_ = temporary_path("tokens", ".npy");
    make_folders(folder_of(path_));
    file_ = std::make_unique<ReplacedFile>(path_);
    const std::string blank(npy_header, ' ');
    file_->write(blank.data(), blank.size());
  }
  write_out();
}

void TokenWriter::write_out() {
  std::vector<std::byte> bytes(std::min(held_.size(), at_once) * static_cast<std::size_t>(bytes_));
  for (std::size_t at = 0; at < held_.size(); at += at_once) {
    const std::size_t count = std::min(at_once, held_.size() - at);
    for (std::size_t i = 0; i < count; ++i)  // the first bytes of a little-endian number
      std::memcpy(&bytes[i * static_cast<std::size_t>(bytes_)], &held_[at + i], static_cast<std::size_t>(bytes_));
    file_->write(bytes.data(), count * static_cast<std::size_t>(bytes_));
  }
  written_ += std::ssize(held_);
  held_ = Tokens();
}

std::string TokenWriter::header() const {
  const char* type = bytes_ == 1 ? "|u1" : bytes_ == 2 ? "<u2" : "<i4";
  std::string text =
      std::string("{'descr': '") + type + "', 'fortran_order': False, 'shape': (" + std::to_string(written_) + ",), }";
  std::string header = std::string(npy_mark) + std::string("\x01\x00\x76\x00", 4);  // version 1.0, 118 bytes follow
  text.resize(npy_header - header.size() - 1, ' ');
  return header + text + "\n";
}

std::shared_ptr<const TokenSequence> TokenWriter::finish() {
  if (!file_) return held_tokens(std::move(held_));
  write_out();
  const std::string first = header();
  file_->rewrite(first.data(), first.size());
  file_->commit();
  auto tokens = open_tokens(path_);
  if (is_temporary_) remove_if_possible(path_);
  return tokens;
}

}  // namespace xtape
