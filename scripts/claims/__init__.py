"""The parts of scripts/published.py."""
