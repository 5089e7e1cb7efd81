"""Tests of the project as a whole: documents, metadata, imports, public names, growth, accuracy."""
