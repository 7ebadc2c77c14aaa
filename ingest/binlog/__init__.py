"""The wire format: bytes of binlog files to Arrow batches. Imports neither Spark nor pymysql."""
