// Means of the weights of several checkpoints.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/arrays/visit.hpp"
#include "base/system/durable.hpp"
#include "train/run/checkpoint.hpp"
#include "train/run/run_parts.hpp"
#include "xtape/safetensors.hpp"

namespace xtape::train {

namespace {
std::string type_of(const ArrayFile::Entry& entry) {
  return std::string(name_of(entry.dtype)) + " " + to_string(entry.shape);
}

/// Returns the place of an array in the file. Throws FileError unless it has the type of the entry of another file.
std::size_t place_of(const ArrayFile::Entry& entry, const ArrayFile& first, const ArrayFile& file) {
  const auto found = std::ranges::find(file.entries(), entry.name, &ArrayFile::Entry::name);
  if (found == file.entries().end())
    throw FileError(file.path() + " has no array '" + entry.name + "', which " + first.path() +
                    " has: only weights of one model have a mean");
  if (found->dtype != entry.dtype || found->shape != entry.shape)
    throw FileError("'" + entry.name + "' is " + type_of(entry) + " in " + first.path() + ", and " + type_of(*found) +
                    " in " + file.path() + ": only weights of one model have a mean");
  return static_cast<std::size_t>(found - file.entries().begin());
}

Array mean_of(const ArrayFile::Entry& entry, const std::vector<std::unique_ptr<ArrayFile>>& files) {
  Array mean(entry.dtype, entry.shape);
  std::vector<double> sums(static_cast<std::size_t>(is_floating(entry.dtype) ? mean.count() : 0));
  for (const auto& file : files) {
    const Array read = file->read(place_of(entry, *files[0], *file));
    if (!is_floating(entry.dtype) && file != files[0] && std::memcmp(read.data(), mean.data(), mean.bytes()) != 0)
      throw FileError("'" + entry.name + "' is " + name_of(entry.dtype) + ", and differs between " + files[0]->path() +
                      " and " + file->path() + ": only floats have a mean");
    if (!is_floating(entry.dtype)) mean = read;
    visit_floats(read, [&](const auto* elements) {
      for (double& sum : sums) sum += static_cast<double>(*elements++);
    });
  }
  visit_floats(mean, [&]<class T>(T* elements) {
    for (const double sum : sums) *elements++ = static_cast<T>(sum / static_cast<double>(files.size()));
  });
  return mean;
}
}  // namespace

void for_each_mean(const std::vector<std::string>& files,
                   const std::function<void(const std::string& name, Array mean)>& take) {
  std::vector<std::unique_ptr<ArrayFile>> open;
  for (const std::string& path : files) open.push_back(std::make_unique<ArrayFile>(path));
  for (const auto& file : open) {  // before anything is taken
    for (const ArrayFile::Entry& entry : file->entries()) place_of(entry, *file, *open[0]);
    if (file->entries().size() != open[0]->entries().size())
      for (const ArrayFile::Entry& entry : open[0]->entries()) place_of(entry, *open[0], *file);
  }
  for (const ArrayFile::Entry& entry : open[0]->entries()) take(entry.name, mean_of(entry, open));
}

void write_mean_run(const std::vector<std::string>& files, const std::string& run, std::int64_t step,
                    const std::string& directory) {
  namespace fs = std::filesystem;
  write_folder(directory, [&](const std::string& beside) {
    const auto copy = [&](const std::string& from, const std::string& to) {
      std::error_code failed;
      fs::copy(from, to, failed);
      if (failed) throw FileError("cannot copy " + from + " to " + to + ": " + failed.message());
    };
    for (const std::string& name : names_in(run))
      if (is_plain_file(path_in(run, name)) && name != lock_file && !name.ends_with(".jsonl"))
        copy(path_in(run, name), path_in(beside, name));
    if (const std::string words = hugging_face_folder(run); path_exists(words))
      copy(words, hugging_face_folder(beside));
    const std::string checkpoint = path_in(path_in(beside, checkpoints_folder), checkpoint_name(step));
    make_folders(checkpoint);
    Store means;
    for_each_mean(files, [&](const std::string& name, Array mean) { means.add(name, mean); });
    save_arrays(path_in(checkpoint, "weights.safetensors"), means);
    State state;
    state.step = step;
    write_state(checkpoint, state);
  });
}

}  // namespace xtape::train
