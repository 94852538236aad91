"""The parts of alignbench: nets written in other ways, what is true of them, recording, judging."""
