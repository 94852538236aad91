"""Renders a report: the same sentences in the terminal, as JSON and as Markdown."""
