#include "text_model.hpp"

#include "commands.hpp"
#include "folder.hpp"

namespace xtape::cli {

TextModel::TextModel(const std::string& path, const std::string& checkpoint, const InferenceArguments& inference) {
  as_wrong_input([&] {
    if (is_hugging_face(path)) {
      if (checkpoint != "last") throw WrongInput("--checkpoint needs a run: " + path + " is a model folder");
      model_ = open_folder(path, inference);
      if (reads_source(*model_)) throw WrongInput(path + " has a model that translates: use xtape translate");
      tokenizer_ = load_tokenizer(path);
      constexpr std::int64_t context_of_most = 1024;  // the default for models without a maximum position
      context_ = context_of_most;
      for (const char* name : {"n_positions", "max_positions"})
        if (model_->hyper().has(name)) context_ = model_->hyper().integer(name);
      end_token_ = tokenizer_->end();
      return;
    }
    run_ = Run::open(path, inference.settings(), CheckpointChoice::parse(checkpoint));
    run_->model().store_weights_as(inference.dtype(run_->model().dtype()));
    if (run_->recipe().data.has_pairs()) throw WrongInput(path + " is a run on sentence pairs: use xtape translate");
    if (run_->recipe().data.kind == "table")
      throw WrongInput(path + " is a run on a table: it was not trained to continue texts");
    context_ = run_->columns();
    end_token_ = run_->end_token();
  });
}

}  // namespace xtape::cli
