"""The command line: one file per command, none of which imports anything heavy at its top."""
