"""Calls and requests: what a manager's calls do, payloads for a provider, its own token count, and its refusals."""
