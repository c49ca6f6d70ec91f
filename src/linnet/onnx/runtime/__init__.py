"""What users hold: models on ONNX Runtime."""
