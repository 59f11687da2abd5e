"""Experiments: each says what its cases are and what is recorded of one; engines run them and the store keeps the records."""
