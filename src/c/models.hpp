/// Models of the C interface: from definitions, folders and ONNX files, and those of runs.
#pragma once

#include <optional>
#include <string>

#include "c/values.hpp"
#include "xtape/model.hpp"
#include "xtape/tokenizers.hpp"
#include "xtape/train.hpp"

namespace xtape::c {

class ModelObject : public Object {
 public:
  static constexpr const char* word = "a model";
  ModelObject() : Object(word) {}
  // Constant functions are safe in several threads at once, so they need no lock.
  virtual Store weights() const = 0;
  virtual Vars inputs(Tape& tape, const std::string& function, const NamedSizes& sizes) const = 0;
  virtual Vars record(Tape& tape, const std::string& function, const Vars& inputs) const = 0;
  virtual Store play(const std::string& function, const NamedArrays& arrays, Mode mode) = 0;
  virtual void load_weights(const std::string& path) = 0;
  virtual void save(const std::string& path, Options& options) const = 0;
};

/// What a definition describes: most models.
class DefinedModel : public ModelObject {
 public:
  virtual Model& model() = 0;
  const Model& model() const { return const_cast<DefinedModel*>(this)->model(); }

  // For texts.
  virtual const Tokenizer& tokenizer() = 0;  ///< Throws Error if there is none.
  virtual Tokens prompt(const std::string& text) { return prompt_of(tokenizer(), text); }
  virtual Tokens end_tokens() { return tokenizer().ends(); }
  virtual std::int64_t context();
  virtual Sampling sampling() const { return {}; }

  Json describe() const override;
  Store weights() const override { return Store(model().weights()); }
  Vars inputs(Tape& tape, const std::string& function, const NamedSizes& sizes) const override;
  Vars record(Tape& tape, const std::string& function, const Vars& inputs) const override;
  Store play(const std::string& function, const NamedArrays& arrays, Mode mode) override;
  void load_weights(const std::string& path) override { model().load_weights(path); }
  void save(const std::string& path, Options& options) const override;
};

class RunObject : public DefinedModel {
 public:
  static constexpr const char* word = "a run";
  explicit RunObject(Run the_run) : run(std::move(the_run)) {}
  Model& model() override { return run.model(); }
  const Tokenizer& tokenizer() override { return run.tokenizer(); }
  Tokens prompt(const std::string& text) override { return run.prompt(text); }
  Tokens end_tokens() override { return run.end_tokens(); }
  std::int64_t context() override;

  Run run;
};

/// Whether a model or recipe is given as its JSON text, not as a name or path.
bool is_json_text(const std::string& source);
/// Opens an ONNX file. Throws Error if this library was built without xtape-onnx.
std::shared_ptr<ModelObject> open_onnx_model(const std::string& path, Options& options);
/// Reads {"hyper.n_layer": 6, "data.text": "a.txt"} as settings of a recipe.
std::vector<Setting> settings_of(const JsonNode& object);
std::vector<Setting> settings_of(Options& options, const char* key);

}  // namespace xtape::c
