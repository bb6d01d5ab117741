"""Networks: nn.Modules only, no training, no files, no devices.

Classification networks take ``x (batch, time, features)`` and, for padded series, ``lengths (batch,)``; they return
logits ``(batch, classes)``.
"""

from sparcets.core.registry import Registry

ARCHITECTURES = Registry(
    "architecture",
    {
        "bilstm": "sparcets.training.architectures:BiLstm",
        "bigru": "sparcets.training.architectures:BiGru",
        "fcn": "sparcets.training.architectures:Fcn",
        "resnet": "sparcets.training.architectures:ResNet",
        "tcn": "sparcets.training.architectures:Tcn",
        "transformer": "sparcets.training.architectures:Transformer",
    },
    about={
        "bilstm": "bidirectional LSTM, read at the last step (the paper's)",
        "bigru": "bidirectional GRU, read at the last step",
        "fcn": "fully convolutional network",
        "resnet": "residual convolutional network",
        "tcn": "causal dilated convolutions",
        "transformer": "self-attention over time steps",
    },
)
