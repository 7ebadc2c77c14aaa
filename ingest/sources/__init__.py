"""Where changes and schemas come from: folders of binlog files, live servers, information_schema."""
