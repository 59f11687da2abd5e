"""Other packages' names, translated: what a user already typed goes on working."""
