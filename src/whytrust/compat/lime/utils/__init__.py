"""As in lime."""
