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
)
