"""The demonstration: the main job on real text, with a worker lost half way, in front of the viewer."""
