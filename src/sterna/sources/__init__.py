"""Sources of Sterna's own."""
