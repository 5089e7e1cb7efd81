"""Views of sessions: a tracker per session measures new items, feeds the fold and keeps the view up to date."""
