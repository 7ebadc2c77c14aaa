"""Everything that holds binloom to the truth: Python tests, dbt tests, fixtures, and real servers."""
