"""The paper: its figures, table, claims and theory."""
