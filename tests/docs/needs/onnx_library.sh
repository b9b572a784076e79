[ -e finetune_onnx ] || { echo "the build has no ONNX"; exit 77; }
