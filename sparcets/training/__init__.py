"""Networks: nn.Modules only, no training, no files, no devices.

Classification networks take ``x (batch, time, features)`` and, for padded series, ``lengths (batch,)``; they return
logits ``(batch, classes)``.
"""

from sparcets.core.registry import Registry

ARCHITECTURES = Registry(
    "architecture",
    {
        "bilstm": "sparcets.training.recurrent:BiLstm",
        "bigru": "sparcets.training.recurrent:BiGru",
        "fcn": "sparcets.training.convolutional:Fcn",
        "resnet": "sparcets.training.convolutional:ResNet",
        "tcn": "sparcets.training.convolutional:Tcn",
        "transformer": "sparcets.training.transformer:Transformer",
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
