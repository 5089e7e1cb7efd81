"""The GitHub Action, against a stub of the API."""
