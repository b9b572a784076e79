#!/usr/bin/env python3
"""Makes onnx/nodes: cases of ONNX's own operator data that Debian's libonnx-testdata is too old to have, in its layout,
at version 23 of the operators. usage: onnx_nodes.py [FOLDER] for those that the tests keep, or in FOLDER for all (tests
read them from XTAPE_ONNX_NODES). Needs onnx; the tests do not."""
import pathlib, sys, warnings

import numpy, onnx
from onnx.backend.test.case.node import collect_testcases

from golden import in_data

warnings.simplefilter("ignore")
VERSION = 23
KEPT = ["attention_3d_transpose_verification", "attention_23_boolmask_fullymasked_row_nan_robustness",
        "attention_3d_causal", "attention_4d_attn_mask_bool", "attention_4d_attn_mask_4d_causal",
        "attention_4d_diff_heads_sizes_softcap", "attention_4d_gqa_with_past_and_present",
        "attention_3d_with_past_and_present_qk_matmul_softcap", "rotary_embedding_3d_input",
        "rotary_embedding_with_interleaved_rotary_dim", "rotary_embedding_no_position_ids",
        "rms_normalization_2d_axis1", "reduce_max_bool_inputs"]


def old_enough(model):
    version = next(each.version for each in model.opset_import if each.domain == "")
    return all(node.domain == "" and onnx.defs.get_schema(node.op_type, version, "").since_version <= VERSION
               for node in model.graph.node)


def write(case, folder):
    for each in case.model.opset_import:
        each.version = min(each.version, VERSION)
    (folder / "test_data_set_0").mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    graph = case.model.graph
    inputs, outputs = case.data_sets[0]
    for kind, arrays, values in [("input", inputs, graph.input), ("output", outputs, graph.output)]:
        for i, (array, value) in enumerate(zip(arrays, values)):
            tensor = array if isinstance(array, onnx.TensorProto) else \
                onnx.numpy_helper.from_array(numpy.asarray(array), value.name)
            (folder / "test_data_set_0" / f"{kind}_{i}.pb").write_bytes(tensor.SerializeToString())


place = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else in_data("onnx/nodes"))
for case in collect_testcases(None):
    name = case.name.removeprefix("test_")
    try:
        if (len(sys.argv) > 1 or name in KEPT) and case.model is not None and old_enough(case.model):
            write(case, place / name)
    except Exception as error:  # sequences and the like
        print(name, "is left out:", type(error).__name__)
