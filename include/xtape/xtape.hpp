/// Includes every public header of the library xtape. mpi.hpp belongs to the library xtape-mpi.
#pragma once

#include "xtape/array_batches.hpp"
#include "xtape/bleu.hpp"
#include "xtape/core.hpp"
#include "xtape/csv.hpp"
#include "xtape/decode.hpp"
#include "xtape/distributed.hpp"
#include "xtape/hugging_face.hpp"
#include "xtape/images.hpp"
#include "xtape/inspect.hpp"
#include "xtape/model.hpp"
#include "xtape/predict.hpp"
#include "xtape/text.hpp"
#include "xtape/tokenizers.hpp"
#include "xtape/train.hpp"
#include "xtape/xtensor.hpp"
