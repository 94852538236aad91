"""The values that pass from step to step: frozen dataclasses, no behaviour beyond their own fields."""
