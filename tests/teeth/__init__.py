"""Silent faults, put into generated projects by edits of their source: see tests/test_teeth.py."""
