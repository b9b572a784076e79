cp "$SOURCE"/examples/data/{tuned_digits.json,tuned_digits_recipe.json,digits.onnx,digits.safetensors} .
