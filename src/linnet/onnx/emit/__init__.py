"""From lowered functions to an ONNX graph."""
