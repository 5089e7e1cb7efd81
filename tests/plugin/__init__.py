"""The plugin for Claude Code, by its files and in the real client."""
