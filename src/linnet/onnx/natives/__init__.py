"""ONNX operators that stand for ops of the library."""
