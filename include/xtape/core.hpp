/// Includes the public headers of the library xtape-core: arrays, tapes, ops, gradients, players and optimisers. They
/// include neither xtensor nor JSON. Include xtape/xtensor.hpp, too, to feed and to read xtensor's arrays.
#pragma once

#include "xtape/array.hpp"
#include "xtape/derivatives.hpp"
#include "xtape/error.hpp"
#include "xtape/grad.hpp"
#include "xtape/gradcheck.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"
#include "xtape/optim.hpp"
#include "xtape/per_example.hpp"
#include "xtape/player.hpp"
#include "xtape/privacy.hpp"
#include "xtape/safetensors.hpp"
#include "xtape/scan.hpp"
#include "xtape/tape.hpp"
#include "xtape/trace.hpp"
#include "xtape/vmap.hpp"
