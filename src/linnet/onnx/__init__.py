"""The ONNX backend: models for any ONNX runtime, and entries run on ONNX Runtime.

    import linnet.onnx
    linnet.onnx.export_model("model.linnet", "model.onnx", entry="forward", generics={"H": 64},
                             weights="folder")
    model = linnet.onnx.load_model("model.linnet", generics={"H": 64}, weights="folder")
    logits = model(tokens)
"""

from linnet.onnx.emit.errors import ExportError
from linnet.onnx.export import export_model, generate_text

__all__ = ["ExportError", "export_model", "generate_text"]
