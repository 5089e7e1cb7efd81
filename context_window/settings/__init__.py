"""The settings of one window: limits and policy, the budget and counter of a model, and the settings in use."""
