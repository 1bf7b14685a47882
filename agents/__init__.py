"""Workflows drafted by a model and approved by a person, and tasks that an agent carries out."""
