"""Run files: read, checked, changed by the words of a command, written into run directories."""
