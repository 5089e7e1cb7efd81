"""Events: their definitions, the comparison of views that causes them, and their export to OpenTelemetry."""
