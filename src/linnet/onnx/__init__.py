"""The ONNX backend: models for any ONNX runtime, and entries run on ONNX Runtime.

import linnet.onnx
linnet.onnx.export_model("model.linnet", "model.onnx", entry="forward", generics={"H": 64},
                         weights="folder")
model = linnet.onnx.load_model("model.linnet", generics={"H": 64}, weights="folder")
logits = model(tokens)
"""

from linnet.backends.errors import InputError, RunError, StateError, installed

with installed("onnx", "onnx", "onnx_ir", "onnxruntime"):
    from linnet.onnx.emit.errors import ExportError
    from linnet.onnx.export import NEWEST_OPSET, export_model, generate_text
    from linnet.onnx.runtime.load import load_model
    from linnet.onnx.runtime.model import Model

__all__ = [
    "NEWEST_OPSET", "ExportError", "InputError", "Model", "RunError", "StateError", "export_model",
    "generate_text", "load_model",
]  # fmt: skip
