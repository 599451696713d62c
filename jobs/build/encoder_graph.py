"""Draws the encoder in ONNX without its weights, which are given to it when it is loaded.

Input: `rows`, the sums of word and position rows of one text `[1, length, width]`. Outputs:
`search`, the mean of the last layer over its pieces `[1, width]`, and `heads`, that of the eighth.
"""

from typing import Any, Literal

from onnx import ModelProto, NodeProto, StringStringEntryProto, TensorProto, helper

from jobs.build.encoder_wheel import HEADS, INNER, LAYERS, WIDTH

Numbers = Literal["int8", "float"]
# Chosen among layers 6, 8, 10 and 12 by the F1 of linear heads over them (decision 0093).
HEADS_LAYER = 8
EPSILON = 1e-12
OPSET, CONTRIB, IR = 17, "com.microsoft", 8
# What each product of a layer turns into what: (columns of its input, columns of its output).
PRODUCTS = {
    "qkv": (WIDTH, 3 * WIDTH),
    "out": (WIDTH, WIDTH),
    "up": (WIDTH, INNER),
    "down": (INNER, WIDTH),
}


class _Drawing:
    def __init__(self, numbers: Numbers) -> None:
        self.numbers = numbers
        self.nodes: list[NodeProto] = []
        self.weights: list[TensorProto] = []

    def node(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [output], name=output, **attributes))
        return output

    def weight(self, name: str, shape: list[int], kind: int = TensorProto.FLOAT) -> str:
        tensor = TensorProto(name=name, data_type=kind, dims=shape)
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.append(StringStringEntryProto(key="location", value="weights"))
        self.weights.append(tensor)
        return name

    def product(self, layer: int, name: str, source: str) -> str:
        """`source @ weight + bias`."""
        columns, result = PRODUCTS[name]
        prefix = f"{layer}.{name}"
        bias = self.weight(f"{prefix}.bias", [result])
        if self.numbers == "float":
            weight = self.weight(f"{prefix}.weight", [columns, result])
            product = self.node("MatMul", [source, weight], f"{prefix}.product")
            return self.node("Add", [product, bias], prefix)
        weight = self.weight(f"{prefix}.weight", [columns, result], TensorProto.INT8)
        scale = self.weight(f"{prefix}.scale", [result])
        inputs = [source, weight, scale, "", bias]
        return self.node("DynamicQuantizeMatMul", inputs, prefix, domain=CONTRIB)

    def norm(self, name: str, source: str) -> str:
        weight, bias = (self.weight(f"{name}.{part}", [WIDTH]) for part in ("weight", "bias"))
        inputs = [source, weight, bias]
        return self.node("LayerNormalization", inputs, name, axis=-1, epsilon=EPSILON)

    def layer(self, layer: int, source: str) -> str:
        qkv = self.product(layer, "qkv", source)
        parts = [f"{layer}.{part}" for part in ("query", "key", "value")]
        self.nodes.append(helper.make_node("Split", [qkv], parts, name=f"{layer}.split", axis=-1))
        attended = self.node(
            "MultiHeadAttention", parts, f"{layer}.attended", domain=CONTRIB, num_heads=HEADS
        )
        added = self.node(
            "Add", [source, self.product(layer, "out", attended)], f"{layer}.added.attended"
        )
        middle = self.norm(f"{layer}.norm.attended", added)
        up = self.product(layer, "up", middle)
        curved = self.node("Gelu", [up], f"{layer}.curved", domain=CONTRIB)
        down = self.product(layer, "down", curved)
        return self.norm(f"{layer}.norm", self.node("Add", [middle, down], f"{layer}.added"))

    def mean(self, source: str, output: str) -> str:
        return self.node("ReduceMean", [source], output, axes=[1], keepdims=0)


def draw(numbers: Numbers) -> ModelProto:
    """The same bytes each time."""
    drawing = _Drawing(numbers)
    state = drawing.norm("embedded", "rows")
    for layer in range(LAYERS):
        state = drawing.layer(layer, state)
        if layer + 1 == HEADS_LAYER:
            drawing.mean(state, "heads")
    drawing.mean(state, "search")
    rows = helper.make_tensor_value_info("rows", TensorProto.FLOAT, [1, "length", WIDTH])
    outputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, WIDTH])
        for name in ("search", "heads")
    ]
    graph = helper.make_graph(drawing.nodes, f"encoder-{numbers}", [rows], outputs, drawing.weights)
    versions = [helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIB, 1)]
    return helper.make_model(
        graph, opset_imports=versions, ir_version=IR, producer_name="jobs.build.encoder"
    )
