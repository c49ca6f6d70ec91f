"""The ONNX tests are left out where the exporter or the runtime is not installed."""

from importlib.util import find_spec

_INSTALLED = all(map(find_spec, ("onnx_ir", "onnxruntime")))
collect_ignore_glob = [] if _INSTALLED else ["test_*.py"]
