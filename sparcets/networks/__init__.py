"""Networks: nn.Modules only, no training, no files, no devices.

Classification networks take ``x (batch, time, features)`` and, for padded series, ``lengths (batch,)``; they return
logits ``(batch, classes)``.
"""

from sparcets.registry import Registry

ARCHITECTURES = Registry(
    "architecture",
    {
        "bilstm": "sparcets.networks.recurrent:BiLstm",
        "bigru": "sparcets.networks.recurrent:BiGru",
        "fcn": "sparcets.networks.fcn:Fcn",
        "resnet": "sparcets.networks.resnet:ResNet",
        "tcn": "sparcets.networks.tcn:Tcn",
        "transformer": "sparcets.networks.transformer:Transformer",
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
