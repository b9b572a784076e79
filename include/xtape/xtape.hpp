/// All of xtape.
#pragma once

#include "xtape/array.hpp"
#include "xtape/decode.hpp"
#include "xtape/error.hpp"
#include "xtape/grad.hpp"
#include "xtape/gradcheck.hpp"
#include "xtape/model.hpp"
#include "xtape/op.hpp"
#include "xtape/ops.hpp"
#include "xtape/optim.hpp"
#include "xtape/player.hpp"
#include "xtape/predict.hpp"
#include "xtape/safetensors.hpp"
#include "xtape/tape.hpp"
#include "xtape/text.hpp"
#include "xtape/train.hpp"
