"""Every knob on one shelf; nothing here imports torch."""
