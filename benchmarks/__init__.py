"""What is measured, and how. Figures stand in README.md beside this."""
