"""Sources of changes and schemas: folders of binlog files, live servers, information_schema."""
