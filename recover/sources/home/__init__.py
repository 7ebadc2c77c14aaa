"""The marts of a warehouse as a log: their Parquet files, and what landed since they were built."""
